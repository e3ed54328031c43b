/* The host's end of the way in: RUN/way-in.sock (mode 0600), and with --port 127.0.0.1:PORT.
 *
 * Each accepted connection is joined to the server's port inside:
 *
 *     DIALLING    connect to the guest; hybrid vsock: say CONNECT, read its `OK ...`
 *     GREETING    say the way-in secret, read `OK`
 *     JOINED      bytes in both directions
 *     WAITING     the guest answered with an end of file or not at all: again, later, until a bound
 *
 * Whether the server answers is known only with the guest's own `OK` (the hybrid socket accepts
 * while nobody is there), so an end before it is "not yet".
 * So is a break behind it, before either side has said anything: a server that ends takes
 * connections until its last moment.
 *
 * Behind the `OK` both directions come in pieces (common/wire/piece.h), so the end of one side's
 * sending is passed on, and a connection to the guest that ends without it is known to be broken,
 * whatever broke it. The client is closed only after the server's end and all bytes before it; in
 * every other case the connection is broken off: a reset over TCP. A Unix socket has no reset;
 * there the client reads ECONNRESET when bytes of its own are unread, and an end of file otherwise.
 *
 * A connection ends when a side closes whole or when both have stopped sending. TCP does not tell a
 * client that has closed from one that has only stopped sending, so a connection over it ends also
 * 60 s after its last byte once one side has stopped, or 600 s where bytes are on their way that
 * the other side does not take. Fixed buffers, no heap but the table itself; beyond WAY_IN_MAX
 * connections one that is half open makes room, and without such a one nothing is accepted until
 * one ends.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_H
#define QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/os/secret.h"
#include "common/wire/piece.h"
#include "qemu-harness/launcher/host/run_folder.h"
#include "qemu-harness/launcher/machine/guest_link.h"

#define WAY_IN_MAX 256 /* two descriptors each: below the usual limit of 1024 */
#define WAY_IN_BUFFER (32 * 1024)
#define WAY_IN_TRY_MS 15000
#define WAY_IN_RETRY_MS 100
#define WAY_IN_IDLE_MS 60000
#define WAY_IN_STALLED_MS 600000
#define WAY_IN_CLOSED_MS 2000 /* for a client to read its last answer while it still sends */
#define WAY_IN_POLLS_MAX (2 + 2 * WAY_IN_MAX)

enum way_in_state {
    WAY_IN_FREE,
    WAY_IN_WAITING,
    WAY_IN_DIALLING,
    WAY_IN_GREETING,
    WAY_IN_JOINED,
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
    bool asked;                  /* in DIALLING: connected, and CONNECT said where it must be */
    bool over_tcp;               /* the client */
    bool begun;                  /* JOINED: a byte or an end has come from either side */
    bool client_gone;            /* closed whole: nothing can be written to it any more */
    bool client_told;            /* the server's end was passed on, after all bytes before it */
    int64_t give_up;             /* ns: until then new tries are made; JOINED: to a server that has
                                  * closed a client may send */
    int64_t next_try;            /* ns, in WAITING */
    int64_t last;                /* ns: when the last byte was moved */
    char line[128];              /* the answer being read, one byte at a time */
    unsigned line_length;
    struct piece_reader pieces;      /* of what the guest sends */
    struct way_in_direction in, out; /* client to guest, guest to client */
};

struct way_in {
    int unix_listener, tcp_listener; /* -1: none */
    unsigned tcp_port;
    char path[RUN_PATH_MAX];
    char secret[SECRET_HEX_LENGTH + 1];    /* "" without a server port */
    struct way_in_connection *connections; /* WAY_IN_MAX */
};

/* Makes secret and listeners when there is a server port. 0 or a negative errno. */
int way_in_open(struct way_in *way_in, long server_port, long tcp_port,
                const struct run_folder *folder, struct failure *why);
void way_in_close(struct way_in *way_in);

/* What to wait for, into `fds` (WAY_IN_POLLS_MAX): the number. *timeout_ms is lowered when something is
 * due earlier. `open`: the sandbox is ready, new connections are taken. */
unsigned way_in_poll(struct way_in *way_in, struct pollfd *fds, bool open, int64_t now,
                     int *timeout_ms);

/* Does all that is due. `fds` as way_in_poll filled them, `count` what it returned. */
void way_in_work(struct way_in *way_in, const struct guest_link *link, const struct pollfd *fds,
                 unsigned count, int64_t now);

#endif
