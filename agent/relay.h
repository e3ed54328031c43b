/* The state of the relay: the table of forwards, a fixed table of connections, the DNS stub, and
 * the clock. Nothing is allocated after the start, and every table has a limit with a defined
 * outcome:
 *
 *     RELAY_CONNECTIONS_MAX  connections. Beyond: a client of the broker's forward gets a canned
 *                            503 from one of OVERFLOW_MAX extra slots (while those are taken,
 *                            clients wait in the listener's backlog); other forwards close at once
 *     RESERVED_MAX           slots more, for the way in alone: what runs in the sandbox can use up
 *                            its own connections to the broker, but not lock its user out
 *     DEMANDING_MAX          way-in connections that have not yet shown the secret; the oldest
 *                            makes room for a new one, so that nobody can crowd out those who know
 *                            it
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
#define ACCEPTS_PER_WAKE 32 /* so that a flood of new clients does not starve the old ones */
#define ACCEPT_PAUSE_MS 100 /* after accept4 failed for want of memory or descriptors */
#define NO_SLOT UINT16_MAX

struct listener {
    bool armed;
    bool is_unix;   /* its clients are the other agent's */
    int64_t resume; /* not before; 0: no pause */
};

struct relay {
    int epoll;
    int64_t now;           /* ms of CLOCK_MONOTONIC, read once per wake-up */
    int64_t next_deadline; /* a lower bound of all deadlines: a wake-up too many does no harm */
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

/* Makes sure that a wake-up comes by then. */
void relay_schedule(struct relay *relay, int64_t deadline);

/* Takes a slot from a free list, `free_slots`, `free_reserved` or `free_overflow`. NULL when it is
 * empty. */
struct connection *relay_slot_take(struct relay *relay, uint16_t *list);

/* Returns a slot, whose descriptors are closed, to its free list. */
void relay_slot_free(struct relay *relay, struct connection *connection);

#endif
