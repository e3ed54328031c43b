/* The one place where the broker waits: epoll, typed references, and a clock read once per wake-up.
 *
 * What is watched is told by a reference (what kind of thing, which one), never by a callback; the
 * engine has one switch over the kinds. All watching is level-triggered.
 *
 * A descriptor's number may come back as another's, also unseen: libcurl closes sockets of its own. So every
 * watching has a stamp, which its events bear: an event of an earlier watching of the number is known by it, and
 * nobody takes out of the set what somebody else has put there since.
 */
#ifndef HOST_BROKER_BASE_EVENT_LOOP_H
#define HOST_BROKER_BASE_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "common/os/failure.h"

#define EVENTS_PER_WAKE_UP 128
#define NEVER INT64_MAX /* a deadline that does not come */

#define MILLISECONDS INT64_C(1000000) /* in nanoseconds, as all times here */
#define SECONDS INT64_C(1000000000)

enum event_source {
    EVENT_LISTENER,   /* index: which listener */
    EVENT_CONNECTION, /* index: place in the table of connections */
    EVENT_UPSTREAM,   /* index: libcurl's socket; pool: which upstream pool it belongs to */
    EVENT_RESOLVER,   /* the process that knows proxies */
    EVENT_SIGNAL,
    EVENT_INPUT, /* standard input: the app */
    EVENT_SOURCE_COUNT
};

struct event_ref {
    enum event_source source;
    unsigned pool; /* EVENT_UPSTREAM */
    uint32_t index;
    uint16_t stamp; /* in events: which watching of the descriptor */
};

/* Of a descriptor's number: its latest watching. */
struct event_watch {
    uint16_t stamp;
    bool parked; /* in the set, but nobody waits for it */
};

struct event_loop {
    int epoll;
    struct event_watch *watches; /* by number, as many as there may be descriptors */
    size_t watch_count;
    int64_t now; /* CLOCK_MONOTONIC at the last wake-up */
    struct epoll_event ready[EVENTS_PER_WAKE_UP];
};

int event_loop_open(struct event_loop *loop, struct failure *why);
void event_loop_close(struct event_loop *loop);

/* 0 or a negative errno. */
int event_loop_add(struct event_loop *loop, int fd, uint32_t events, struct event_ref ref);
int event_loop_change(struct event_loop *loop, int fd, uint32_t events, struct event_ref ref);
void event_loop_remove(struct event_loop *loop, int fd);

/* For descriptors that are watched by turns, libcurl's sockets between requests, of which it costs one call instead of
 * two. event_loop_park leaves it in the set. event_loop_watch takes it from there, or adds it: the kernel says
 * which, as it knows the file and not only its number. event_loop_is_wanted judges an event of such a descriptor: false
 * when it is of an earlier watching, or when nobody waits for it, and then it is taken out of the set. */
void event_loop_park(struct event_loop *loop, int fd);
int event_loop_watch(struct event_loop *loop, int fd, uint32_t events, struct event_ref ref);
bool event_loop_is_wanted(struct event_loop *loop, int fd, uint16_t stamp);

/* Waits until something is ready or `deadline` has come; reads the clock; returns how many entries of
 * `ready` are filled (0 after a signal). */
int event_loop_wait(struct event_loop *loop, int64_t deadline);

struct event_ref event_ref_of(const struct epoll_event *event);

#endif
