/* One connection of the way in: from a client on this host to the server's port inside.
 *
 * Only the guest's own `OK` shows that the server answers, since the hybrid socket accepts while
 * nobody listens behind it. An end of file before it, or no answer, means "not yet": the
 * connection is tried again until a bound. The same holds for a break after it, before either
 * side has sent anything: a server that ends accepts connections until its last moment.
 *
 * After the `OK` both directions come in pieces (common/wire/piece.h). So the end of one side's
 * sending is passed on, and a connection to the guest that ends without it is known to be broken.
 * The client sees an end of file only after the server's end and all bytes before it; in every
 * other case it sees a break: a reset over TCP. A Unix socket has no reset: there the client
 * reads ECONNRESET when bytes of its own are unread, and an end of file otherwise.
 *
 * A connection ends when one side closes, or when both have stopped sending. Over TCP a client
 * that has closed looks like one that has only stopped sending. So a TCP connection also ends 60
 * s after its last byte once one side has stopped, or 600 s when bytes wait that the other side
 * does not take. Each direction has a buffer of fixed size.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_CONNECTION_INTERNAL_H
#define QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_CONNECTION_INTERNAL_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/wire/piece.h"
#include "qemu-harness/launcher/machine/guest_link.h"

#define WAY_IN_BUFFER (32 * 1024)
#define WAY_IN_TRY_MS 15000
#define WAY_IN_RETRY_MS 100
#define WAY_IN_IDLE_MS 60000
#define WAY_IN_STALLED_MS 600000
#define WAY_IN_CLOSED_MS 2000 /* for a client to read its last answer while it still sends */

enum way_in_state {
    WAY_IN_FREE,     /* unused; leads to WAITING when a client is accepted */
    WAY_IN_WAITING,  /* until the next try to reach the guest, at once at first */
    WAY_IN_DIALLING, /* connecting; hybrid vsock: then CONNECT is sent and `OK ...` is read */
    WAY_IN_GREETING, /* the secret was sent, `OK` is awaited */
    WAY_IN_JOINED,   /* bytes in both directions */
    WAY_IN_STATE_COUNT
};

struct way_in_direction {
    bool ended;          /* nothing more can be read from the sending side */
    unsigned start, end; /* pieces that are still to be written */
    uint8_t bytes[WAY_IN_BUFFER];
};

struct way_in_connection {
    enum way_in_state state;
    int client, guest;
    int client_poll, guest_poll; /* their places in the array of the last way_in_poll, or -1 */
    bool asked;                  /* in DIALLING: connected, and CONNECT was sent if needed */
    bool over_tcp;               /* the client's connection */
    bool begun;                  /* in JOINED: a byte or an end has come from either side */
    bool client_gone;            /* the client has closed: nothing can be written to it any more */
    bool client_told;            /* the server's end was passed on, after all bytes before it */
    /* ns: before JOINED the last time for a new try; in JOINED, after the server has closed, the
     * time until which the client may send */
    int64_t give_up;
    int64_t next_try; /* ns, in WAITING */
    int64_t last;     /* ns: when the last byte was moved */
    char line[128];   /* the answer being read, one byte at a time */
    unsigned line_length;
    struct piece_reader pieces;      /* of the bytes from the guest */
    struct way_in_direction in, out; /* client to guest, guest to client */
};

/* Takes ownership of the accepted descriptor; the state is WAITING, due at once. */
void way_in_connection_begin(struct way_in_connection *connection, int client, bool over_tcp,
                             int64_t now);

/* Closes both sides; the entry is free again. A TCP client that has not got all bytes reads a
 * reset. */
void way_in_connection_end(struct way_in_connection *connection);

/* True when one side has stopped sending or has closed. */
bool way_in_connection_half_open(const struct way_in_connection *connection);

/* Fills in up to two entries; `base` is the place of fds[0] in the whole array. */
unsigned way_in_connection_poll(struct way_in_connection *connection, struct pollfd *fds,
                                unsigned base);

/* The time (ns) of the next step without an event, or NEVER. */
int64_t way_in_connection_due(const struct way_in_connection *connection);

/* Handles what is ready or due; `all` is the whole array. */
void way_in_connection_work(struct way_in_connection *connection, const struct guest_link *link,
                            const char *secret, const struct pollfd *all, int64_t now);

#endif
