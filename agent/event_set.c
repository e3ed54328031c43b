/* The relay's use of epoll_ctl(2). */
#include "agent/event_set.h"

#include <sys/epoll.h>

void event_set_watch(int epoll, int fd, uint32_t *armed, uint32_t events, uint64_t reference)
{
    struct epoll_event event = {.events = events, .data.u64 = reference};
    int operation = events == 0 ? EPOLL_CTL_DEL : *armed == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(epoll, operation, fd, &event) == 0)
        *armed = events;
}
