/* The guest's vsock, of one of two kinds:
 *
 *     VSOCK_KERNEL   /dev/vhost-vsock. The guest has its own CID on AF_VSOCK; connections are
 *                    accepted from that CID only. Ports are chosen free.
 *     VSOCK_HYBRID   vhost-device-vsock, a child process. The guest's connections to port P of
 *                    CID 2 arrive at the Unix socket RUN/vsock.sock_P. To reach the guest, the
 *                    host connects to RUN/vsock.sock, writes `CONNECT P\n` and reads `OK ...\n`.
 *                    Ports are fixed, since each sandbox has its own folder RUN.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_VSOCK_INTERNAL_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_VSOCK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/host/processes.h"
#include "qemu-harness/launcher/host/run_folder.h"
#include "qemu-harness/launcher/machine/guest_link.h"

#define VSOCK_BROKER_PORT 1025 /* hybrid only; the control channel has CONTROL_PORT_DEFAULT */

enum vsock_kind { VSOCK_KERNEL, VSOCK_HYBRID, VSOCK_KIND_COUNT };

struct vsock {
    enum vsock_kind kind;
    uint32_t guest_cid;
    /* kernel: /dev/vhost-vsock with the CID set; hybrid: a connection to the device's socket */
    int device;
    char path[RUN_PATH_MAX]; /* hybrid: RUN/vsock.sock */
};

/* Chooses the kind and starts the device. 0 or a negative errno; QEMU then inherits `device`. */
int vsock_start(struct vsock *vsock, const struct options *options, const struct run_folder *folder,
                struct process_table *processes, struct failure *why);

void vsock_describe(const struct vsock *vsock, struct guest_link *link);

/* Listens for the guest's control channel; *port is the port that the guest dials. The descriptor
 * or a negative errno. */
int vsock_listen_control(const struct vsock *vsock, uint32_t *port, struct failure *why);

/* Accepts a connection from this guest only (kernel: from its CID; hybrid: from a process of our
 * uid). The descriptor (non-blocking), -EAGAIN, or another negative errno for a connection that
 * was refused. */
int vsock_accept(const struct vsock *vsock, int listener);

/* Opens /dev/vhost-vsock and gives the guest a free CID. The descriptor or a negative errno. */
int vsock_open_kernel(uint32_t *guest_cid);

#endif
