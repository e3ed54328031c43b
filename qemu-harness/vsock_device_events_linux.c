/* Loaded into vhost-device-vsock (LD_PRELOAD), where it stands between that program and epoll_wait(2).
 *
 * vhost-device-vsock 0.3 flushes what it holds for a host's socket only on an event that is EPOLLOUT and nothing
 * else. While the same socket has input too, it looks at the input alone; has the guest no room for that, it asks
 * the guest for credit, gets the answer "none", watches the socket again and finds the same event, thousands of
 * times a second. A server inside that answers what it is sent (an echo) makes room only once its own bytes leave:
 * so a stream in both directions whose host pauses for a second stops for good, on one full buffer behind the
 * other. No side can help: the guest's credit is honestly none, and the host cannot take its bytes back.
 *
 * Here an event of both kinds is told in turns: first that there is room, which flushes, and at the next call,
 * since the event is still there, that there is both. What is only one of the two passes as it is.
 *
 * The program is single-threaded where its sockets are concerned; the data of an event is the descriptor.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#define DESCRIPTORS_MAX 65536 /* beyond it events pass as they are */

typedef int wait_function(int, struct epoll_event *, int, int);

static bool told_of_room[DESCRIPTORS_MAX];

static void take_turns(struct epoll_event *event)
{
    uint64_t descriptor = event->data.u64;
    if (event->events != (EPOLLIN | EPOLLOUT) || descriptor >= DESCRIPTORS_MAX)
        return;
    told_of_room[descriptor] = !told_of_room[descriptor];
    if (told_of_room[descriptor])
        event->events = EPOLLOUT;
}

int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
    static wait_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "epoll_wait");
    if (!next) {
        errno = ENOSYS;
        return -1;
    }
    int count = next(epoll, events, max, timeout);
    for (int i = 0; i < count; i++)
        take_turns(&events[i]);
    return count;
}
