/* The state of the relay: the table of forwards, a fixed table of connections, the DNS stub, and
 * the clock. Nothing is allocated after the start, and every table has a limit with a defined
 * outcome:
 *
 *     RELAY_CONNECTIONS_MAX  connections. Above that, a client of the broker's forward gets a
 *                            canned 503 in one of OVERFLOW_MAX extra slots, or waits in the
 *                            listener's backlog while those are used; other forwards close at once
 *     RESERVED_MAX           more slots, for the way in alone: programs in the sandbox can use up
 *                            the connections to the broker, but cannot block the user's way in
 *     DEMANDING_MAX          way-in connections that have not yet sent the secret; a new one closes
 *                            the oldest, so that connections without the secret cannot block those
 *                            that have it
 */
#ifndef AGENT_RELAY_H
#define AGENT_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/connection.h"
#include "agent/dns_server.h"
#include "common/os/failure.h"
#include "common/wire/relay_config.h"

#define DEMANDING_MAX 64
#define RESERVED_MAX 64
#define OVERFLOW_MAX 32
#define BUFFERED_MAX (RELAY_CONNECTIONS_MAX + RESERVED_MAX) /* slots with rings */
#define SLOTS_MAX (BUFFERED_MAX + OVERFLOW_MAX)
#define ACCEPTS_PER_WAKE 32 /* so that many new clients do not delay the connected ones */
#define ACCEPT_PAUSE_MS 100 /* after accept4(2) failed for lack of memory or descriptors */
#define NO_SLOT UINT16_MAX

struct listener {
    bool armed;
    bool is_unix;   /* its clients are connections of the other relay */
    int64_t resume; /* not before; 0: no pause */
};

struct relay {
    int epoll;
    int64_t now;           /* ms of CLOCK_MONOTONIC, read once per wake-up */
    int64_t next_deadline; /* a lower bound of all deadlines: an extra wake-up is harmless */
    unsigned timed;        /* connections that have a deadline */
    uint64_t serial;
    struct relay_config config;
    uint32_t preferred[RELAY_FORWARDS_MAX]; /* the address that worked last */
    struct listener listeners[RELAY_FORWARDS_MAX];
    struct connection connections[SLOTS_MAX];
    uint16_t free_slots, free_reserved, free_overflow; /* heads of the free lists */
    uint16_t marked;                                   /* head of the list for the sweep */
    unsigned demanding;                                /* connections in CONNECTION_DEMANDING */
    struct dns_server dns;

    int config_fd;
    size_t incoming_length; /* of the next record */
    struct relay_config incoming;
};

/* Prepares a zeroed relay: an empty table, an epoll set, the clock. 0 or a negative errno with a
 * reason. */
int relay_init(struct relay *relay, const struct relay_config *config, struct failure *why);

/* Reads the clock into `now`. */
void relay_read_clock(struct relay *relay);

/* The only setter of a connection's deadline. */
void relay_set_deadline(struct relay *relay, struct connection *connection, int64_t deadline);

/* Ensures a wake-up at the deadline or earlier. */
void relay_schedule(struct relay *relay, int64_t deadline);

/* Takes a slot from a free list, `free_slots`, `free_reserved` or `free_overflow`. NULL when it is
 * empty. */
struct connection *relay_slot_take(struct relay *relay, uint16_t *list);

/* Returns a slot, whose descriptors are closed, to its free list. */
void relay_slot_free(struct relay *relay, struct connection *connection);

#endif
