/* The host's end of the way in: RUN/way-in.sock (mode 0600), and with --port 127.0.0.1:PORT.
 *
 * Each accepted connection is connected to the server's port inside (way_in_connection_internal.h
 * has the states of a connection). Beyond WAY_IN_MAX connections, the half-open one that was
 * silent for longest is closed to make room; without a half-open one nothing is accepted until
 * one ends. The only heap memory is the table of connections.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_H
#define QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/os/secret.h"
#include "qemu-harness/launcher/host/run_folder.h"
#include "qemu-harness/launcher/machine/guest_link.h"

#define WAY_IN_MAX 256 /* two descriptors each: below the usual limit of 1024 */
#define WAY_IN_POLLS_MAX (2 + 2 * WAY_IN_MAX)

struct way_in_connection;

struct way_in {
    int unix_listener, tcp_listener; /* -1: none */
    unsigned tcp_port;
    char path[RUN_PATH_MAX];
    char secret[SECRET_HEX_LENGTH + 1];    /* "" without a server port */
    struct way_in_connection *connections; /* WAY_IN_MAX */
};

/* Makes the secret and the listeners when there is a server port. 0 or a negative errno. */
int way_in_open(struct way_in *way_in, long server_port, long tcp_port,
                const struct run_folder *folder, struct failure *why);
void way_in_close(struct way_in *way_in);

/* Writes the descriptors to wait for into `fds` (WAY_IN_POLLS_MAX) and returns their number.
 * *timeout_ms is lowered when something is due earlier. `open`: new connections are accepted. */
unsigned way_in_poll(struct way_in *way_in, struct pollfd *fds, bool open, int64_t now,
                     int *timeout_ms);

/* Handles all that is ready or due. `fds` as way_in_poll filled them, `count` what it returned. */
void way_in_work(struct way_in *way_in, const struct guest_link *link, const struct pollfd *fds,
                 unsigned count, int64_t now);

#endif
