/* epoll(7) behind event_loop.h. */
#include "host-broker/base/event_loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/os/io.h"
#include "common/os/memory.h"

#define WATCHES_MAX (1024 * 1024)

/* The latest watch of a descriptor's number. */
struct event_watch {
    uint16_t stamp;
    bool parked;
};

struct event_queue {
    int epoll;
    size_t watch_count;
    struct event_watch *watches; /* by number, for as many descriptors as there may be */
    struct epoll_event found[EVENTS_PER_WAKE_UP];
};

static uint64_t pack(struct event_ref ref)
{
    return (uint64_t)ref.source << 56 | (uint64_t)ref.pool << 48 | (uint64_t)ref.stamp << 32 |
           ref.index;
}

static struct event_ref unpack(uint64_t packed)
{
    return (struct event_ref){
        .source = (enum event_source)(packed >> 56),
        .pool = (unsigned)(packed >> 48 & 0xff),
        .index = (uint32_t)packed,
        .stamp = (uint16_t)(packed >> 32),
    };
}

static uint32_t to_epoll(uint32_t what)
{
    return (what & EVENT_READABLE ? EPOLLIN : 0) | (what & EVENT_WRITABLE ? EPOLLOUT : 0) |
           (what & EVENT_PEER_ENDED ? EPOLLRDHUP : 0);
}

static uint32_t from_epoll(uint32_t events)
{
    return (events & EPOLLIN ? EVENT_READABLE : 0) | (events & EPOLLOUT ? EVENT_WRITABLE : 0) |
           (events & EPOLLRDHUP ? EVENT_PEER_ENDED : 0) |
           (events & (EPOLLERR | EPOLLHUP) ? EVENT_BROKEN : 0);
}

int event_loop_open(struct event_loop *loop, struct failure *why)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return failure_errno(why, errno, "read the limit of descriptors");
    struct event_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return failure_set(why, ENOMEM, "make an event loop");
    queue->watch_count = limit.rlim_cur < WATCHES_MAX ? limit.rlim_cur : WATCHES_MAX;
    queue->watches = memory_reserve(queue->watch_count * sizeof(*queue->watches));
    queue->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->queue = queue;
    loop->now = io_monotonic_ns();
    if (queue->watches && queue->epoll >= 0)
        return 0;
    return failure_errno(why, queue->watches ? errno : ENOMEM, "make an event loop");
}

void event_loop_close(struct event_loop *loop)
{
    struct event_queue *queue = loop->queue;
    close(queue->epoll);
    memory_free(queue->watches, queue->watch_count * sizeof(*queue->watches));
    free(queue);
}

static int control(struct event_queue *queue, int operation, int fd, uint32_t what,
                   struct event_ref ref)
{
    struct epoll_event event = {.events = to_epoll(what), .data.u64 = pack(ref)};
    return epoll_ctl(queue->epoll, operation, fd, &event) < 0 ? -errno : 0;
}

static bool is_known(const struct event_queue *queue, int fd)
{
    return fd >= 0 && (size_t)fd < queue->watch_count;
}

/* Begins another watch of the number. */
static int stamp(struct event_queue *queue, int fd, struct event_ref *ref)
{
    if (!is_known(queue, fd))
        return -EMFILE;
    struct event_watch *watch = &queue->watches[fd];
    *watch = (struct event_watch){.stamp = (uint16_t)(watch->stamp + 1)};
    ref->stamp = watch->stamp;
    return 0;
}

int event_loop_add(struct event_loop *loop, int fd, uint32_t what, struct event_ref ref)
{
    int result = stamp(loop->queue, fd, &ref);
    return result < 0 ? result : control(loop->queue, EPOLL_CTL_ADD, fd, what, ref);
}

int event_loop_change(struct event_loop *loop, int fd, uint32_t what, struct event_ref ref)
{
    int result = stamp(loop->queue, fd, &ref);
    return result < 0 ? result : control(loop->queue, EPOLL_CTL_MOD, fd, what, ref);
}

void event_loop_remove(struct event_loop *loop, int fd)
{
    (void)epoll_ctl(loop->queue->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void event_loop_park(struct event_loop *loop, int fd)
{
    if (is_known(loop->queue, fd))
        loop->queue->watches[fd].parked = true;
}

int event_loop_watch(struct event_loop *loop, int fd, uint32_t what, struct event_ref ref)
{
    int result = stamp(loop->queue, fd, &ref);
    if (result == 0)
        result = control(loop->queue, EPOLL_CTL_MOD, fd, what, ref);
    return result == -ENOENT ? control(loop->queue, EPOLL_CTL_ADD, fd, what, ref) : result;
}

bool event_loop_is_wanted(struct event_loop *loop, int fd, uint16_t stamp)
{
    struct event_queue *queue = loop->queue;
    if (!is_known(queue, fd) || queue->watches[fd].stamp != stamp)
        return false;
    if (queue->watches[fd].parked)
        event_loop_remove(loop, fd);
    return !queue->watches[fd].parked;
}

int event_loop_wait(struct event_loop *loop, int64_t deadline)
{
    struct event_queue *queue = loop->queue;
    int count = epoll_wait(queue->epoll, queue->found, EVENTS_PER_WAKE_UP,
                           io_timeout_ms(deadline, io_monotonic_ns()));
    loop->now = io_monotonic_ns();
    for (int i = 0; i < count; i++)
        loop->ready[i] = (struct event){
            .ref = unpack(queue->found[i].data.u64),
            .what = from_epoll(queue->found[i].events),
        };
    return count < 0 ? 0 : count;
}
