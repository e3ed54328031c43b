/* The relay: one epoll set over the configuration pipe, the listeners, a fixed table of connections
 * and the DNS stub.
 *
 * One wake-up: the clock is read once, every event is dispatched by its typed reference, due timers
 * run, and the sweep frees what was marked. Nothing is allocated after the start, and every table
 * has a limit with a defined outcome:
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

/* What an event belongs to: epoll's data is REFERENCE(kind, index). A side's index is 2 * slot +
 * side. */
enum reference_kind {
    REFERENCE_CONFIG,
    REFERENCE_LISTENER,
    REFERENCE_SIDE,
    REFERENCE_DNS_SOCKET,
    REFERENCE_DNS_STREAM,
    REFERENCE_KIND_COUNT
};

#define REFERENCE(kind, index) ((uint64_t)(kind) << 32 | (uint32_t)(index))

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

/* Prepares a zeroed relay with a configuration that config_check accepted; config_fd is watched for
 * further records. 0 or a negative errno with a reason. */
int relay_init(struct relay *relay, const struct relay_config *config, int config_fd,
               struct failure *why);

/* Runs until the configuration pipe ends (0), or something is wrong that no single connection
 * caused (a negative errno with a reason). */
int relay_run(struct relay *relay, struct failure *why);

/* Adds, changes or (events 0) removes a descriptor; *armed is what is set now. */
void relay_watch(struct relay *relay, int fd, uint32_t *armed, uint32_t events, uint64_t reference);

/* The only setter of a connection's deadline. */
void relay_set_deadline(struct relay *relay, struct connection *connection, int64_t deadline);

/* Makes sure that a wake-up comes by then. */
void relay_schedule(struct relay *relay, int64_t deadline);

#endif
