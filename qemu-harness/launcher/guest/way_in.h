/* The host's end of the way in: RUN/way-in.sock (mode 0600), and with --port 127.0.0.1:PORT.
 *
 * Each accepted connection is joined to the server's port inside:
 *
 *     DIALLING    connect to the guest; hybrid vsock: say CONNECT, read its `OK ...`
 *     GREETING    say the way-in secret, read `OK`
 *     JOINED      bytes in both directions
 *     WAITING     the guest answered with an end of file or not at all: again, later, until a bound
 *
 * Whether the server answers is known only with the guest's own `OK` (the hybrid socket accepts while
 * nobody is there), so an end before it is "not yet".
 *
 * The end of one side's sending is not passed on (hybrid vsock cannot). A connection ends when a side
 * closes whole, or after one side has stopped sending and for 60 s no byte came. Fixed buffers, no heap
 * but the table itself; beyond WAY_IN_MAX connections one whose client has stopped sending makes room, and
 * without such a one nothing is accepted until one ends.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_H
#define QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/os/secret.h"
#include "qemu-harness/launcher/host/run_folder.h"
#include "qemu-harness/launcher/machine/vsock.h"

#define WAY_IN_MAX 256 /* two descriptors each: below the usual limit of 1024 */
#define WAY_IN_BUFFER (32 * 1024)
#define WAY_IN_TRY_MS 15000
#define WAY_IN_RETRY_MS 100
#define WAY_IN_IDLE_MS 60000
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
    bool ended; /* the reading side has sent its end */
    unsigned start, end;
    char bytes[WAY_IN_BUFFER];
};

struct way_in_connection {
    enum way_in_state state;
    int client, guest;
    int client_poll, guest_poll; /* their places in the array of the last way_in_poll, or -1 */
    bool asked;                  /* in DIALLING: connected, and CONNECT said where it must be */
    bool client_gone;            /* closed whole: nothing can be written to it any more */
    int64_t give_up;             /* ns: until then new tries are made */
    int64_t next_try;            /* ns, in WAITING */
    int64_t last;                /* ns: when the last byte was moved */
    char line[128];              /* the answer being read, one byte at a time */
    unsigned line_length;
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
void way_in_work(struct way_in *way_in, const struct vsock *vsock, const struct pollfd *fds,
                 unsigned count, int64_t now);

#endif
