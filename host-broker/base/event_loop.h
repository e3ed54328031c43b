/* The event loop: which descriptors are watched, and one place that waits for them.
 *
 * A watched descriptor is known by a typed reference (what kind of object, and which one), not by a
 * callback; the engine has one switch over the kinds. All watching is level-triggered. The clock is
 * read once per wake-up.
 *
 * The system may give the number of a closed descriptor to another one, and libcurl closes sockets
 * without telling. Each watch of a number therefore has a stamp, which its events carry: an event
 * of an earlier watch of the same number is recognised, and nobody removes a watch that somebody
 * else has added since.
 */
#ifndef HOST_BROKER_BASE_EVENT_LOOP_H
#define HOST_BROKER_BASE_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/os/failure.h"
#include "common/os/io.h"

#define EVENTS_PER_WAKE_UP 128

/* What a descriptor is watched for, and what is the case. */
#define EVENT_READABLE 1u
#define EVENT_WRITABLE 2u
#define EVENT_PEER_ENDED 4u /* the peer has ended its sending */
#define EVENT_BROKEN 8u     /* an error, or both directions are closed: reported without asking */

enum event_source {
    EVENT_LISTENER,   /* index: which listener */
    EVENT_CONNECTION, /* index: place in the table of connections */
    EVENT_UPSTREAM,   /* index: libcurl's socket; pool: the upstream pool it belongs to */
    EVENT_RESOLVER,   /* the process that finds proxies */
    EVENT_PROCESS,    /* a request to the process: process.h */
    EVENT_INPUT,      /* standard input: the app */
    EVENT_SOURCE_COUNT
};

struct event_ref {
    enum event_source source;
    unsigned pool; /* EVENT_UPSTREAM */
    uint32_t index;
    uint16_t stamp; /* in events: which watch of the descriptor's number */
};

struct event {
    struct event_ref ref;
    uint32_t what; /* EVENT_READABLE ... */
};

struct event_queue; /* the system's own */

struct event_loop {
    struct event_queue *queue;
    int64_t now; /* monotonic nanoseconds at the last wake-up */
    struct event ready[EVENTS_PER_WAKE_UP];
};

/* 0 or a negative errno with a reason. */
int event_loop_open(struct event_loop *loop, struct failure *why);
void event_loop_close(struct event_loop *loop);

/* 0 or a negative errno. */
int event_loop_add(struct event_loop *loop, int fd, uint32_t what, struct event_ref ref);
int event_loop_change(struct event_loop *loop, int fd, uint32_t what, struct event_ref ref);
void event_loop_remove(struct event_loop *loop, int fd);

/* For libcurl's sockets, which are watched and not watched by turns: this way a turn costs one
 * system call instead of two. event_loop_park keeps the watch, but nobody wants its events.
 * event_loop_watch takes a parked watch over or adds one; the system tells which, since it knows
 * the file and not only its number. event_loop_is_wanted judges an event of such a descriptor:
 * false when it belongs to an earlier watch, or to a parked one, which is then removed. */
void event_loop_park(struct event_loop *loop, int fd);
int event_loop_watch(struct event_loop *loop, int fd, uint32_t what, struct event_ref ref);
bool event_loop_is_wanted(struct event_loop *loop, int fd, uint16_t stamp);

/* Waits until something is ready or `deadline` has come, and reads the clock. The number of entries
 * of `ready` that are filled, 0 after a signal. */
int event_loop_wait(struct event_loop *loop, int64_t deadline);

#endif
