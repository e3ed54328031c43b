/* epoll(7) under typed references: see event_loop.h. */
#include "host-broker/event_loop.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "common/io.h"

static uint64_t pack(struct event_ref ref)
{
    return (uint64_t)ref.source << 56 | (uint64_t)ref.pool << 48 | ref.index;
}

struct event_ref event_ref_of(const struct epoll_event *event)
{
    return (struct event_ref){
        .source = (enum event_source)(event->data.u64 >> 56),
        .pool = (unsigned)(event->data.u64 >> 48 & 0xff),
        .index = (uint32_t)event->data.u64,
    };
}

int event_loop_open(struct event_loop *loop, struct failure *why)
{
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->now = io_monotonic_ns();
    return loop->epoll < 0 ? failure_errno(why, errno, "make an event loop") : 0;
}

static int control(struct event_loop *loop, int operation, int fd, uint32_t events,
                   struct event_ref ref)
{
    struct epoll_event event = {.events = events, .data.u64 = pack(ref)};
    return epoll_ctl(loop->epoll, operation, fd, &event) < 0 ? -errno : 0;
}

int event_loop_add(struct event_loop *loop, int fd, uint32_t events, struct event_ref ref)
{
    return control(loop, EPOLL_CTL_ADD, fd, events, ref);
}

int event_loop_change(struct event_loop *loop, int fd, uint32_t events, struct event_ref ref)
{
    return control(loop, EPOLL_CTL_MOD, fd, events, ref);
}

void event_loop_remove(struct event_loop *loop, int fd)
{
    (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* Rounded up: waking before the deadline would only wake again. */
static int timeout_ms(int64_t deadline, int64_t now)
{
    if (deadline == NEVER)
        return -1;
    if (deadline <= now)
        return 0;
    int64_t ms = (deadline - now + MILLISECONDS - 1) / MILLISECONDS;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

int event_loop_wait(struct event_loop *loop, int64_t deadline)
{
    int count = epoll_wait(loop->epoll, loop->ready, EVENTS_PER_WAKE_UP,
                           timeout_ms(deadline, io_monotonic_ns()));
    loop->now = io_monotonic_ns();
    return count < 0 ? 0 : count;
}
