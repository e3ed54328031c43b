/* epoll(7) under typed references: see event_loop.h. */
#include "host-broker/base/event_loop.h"

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/os/io.h"

#define WATCHES_MAX (1024 * 1024)

static uint64_t pack(struct event_ref ref)
{
    return (uint64_t)ref.source << 56 | (uint64_t)ref.pool << 48 | (uint64_t)ref.stamp << 32 |
           ref.index;
}

struct event_ref event_ref_of(const struct epoll_event *event)
{
    return (struct event_ref){
        .source = (enum event_source)(event->data.u64 >> 56),
        .pool = (unsigned)(event->data.u64 >> 48 & 0xff),
        .index = (uint32_t)event->data.u64,
        .stamp = (uint16_t)(event->data.u64 >> 32),
    };
}

int event_loop_open(struct event_loop *loop, struct failure *why)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return failure_errno(why, errno, "read the limit of descriptors");
    loop->watch_count = limit.rlim_cur < WATCHES_MAX ? limit.rlim_cur : WATCHES_MAX;
    void *memory = mmap(NULL, loop->watch_count * sizeof(*loop->watches), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return failure_errno(why, errno, "reserve a table of descriptors");
    loop->watches = memory;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->now = io_monotonic_ns();
    return loop->epoll < 0 ? failure_errno(why, errno, "make an event loop") : 0;
}

void event_loop_close(struct event_loop *loop)
{
    close(loop->epoll);
    munmap(loop->watches, loop->watch_count * sizeof(*loop->watches));
}

static int control(struct event_loop *loop, int operation, int fd, uint32_t events,
                   struct event_ref ref)
{
    struct epoll_event event = {.events = events, .data.u64 = pack(ref)};
    return epoll_ctl(loop->epoll, operation, fd, &event) < 0 ? -errno : 0;
}

static bool is_known(const struct event_loop *loop, int fd)
{
    return fd >= 0 && (size_t)fd < loop->watch_count;
}

/* Begins another watching of the number. */
static int stamp(struct event_loop *loop, int fd, struct event_ref *ref)
{
    if (!is_known(loop, fd))
        return -EMFILE;
    struct event_watch *watch = &loop->watches[fd];
    *watch = (struct event_watch){.stamp = (uint16_t)(watch->stamp + 1)};
    ref->stamp = watch->stamp;
    return 0;
}

int event_loop_add(struct event_loop *loop, int fd, uint32_t events, struct event_ref ref)
{
    int result = stamp(loop, fd, &ref);
    return result < 0 ? result : control(loop, EPOLL_CTL_ADD, fd, events, ref);
}

int event_loop_change(struct event_loop *loop, int fd, uint32_t events, struct event_ref ref)
{
    int result = stamp(loop, fd, &ref);
    return result < 0 ? result : control(loop, EPOLL_CTL_MOD, fd, events, ref);
}

void event_loop_remove(struct event_loop *loop, int fd)
{
    (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void event_loop_park(struct event_loop *loop, int fd)
{
    if (is_known(loop, fd))
        loop->watches[fd].parked = true;
}

int event_loop_watch(struct event_loop *loop, int fd, uint32_t events, struct event_ref ref)
{
    int result = stamp(loop, fd, &ref);
    if (result == 0)
        result = control(loop, EPOLL_CTL_MOD, fd, events, ref);
    return result == -ENOENT ? control(loop, EPOLL_CTL_ADD, fd, events, ref) : result;
}

bool event_loop_is_wanted(struct event_loop *loop, int fd, uint16_t stamp)
{
    if (!is_known(loop, fd) || loop->watches[fd].stamp != stamp)
        return false;
    if (loop->watches[fd].parked)
        event_loop_remove(loop, fd);
    return !loop->watches[fd].parked;
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
