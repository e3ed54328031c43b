/* The guest's vsock, whichever this host has.
 *
 *     VSOCK_KERNEL   /dev/vhost-vsock: the guest has a CID of its own on AF_VSOCK; we accept from that CID only
 *     VSOCK_HYBRID   vhost-device-vsock, a process of ours: the guest's dial of port P arrives at the Unix
 *                    socket RUN/vsock.sock_P; to reach the guest one connects to RUN/vsock.sock and writes
 *                    `CONNECT P\n`, answered `OK ...\n`
 *
 *     VSOCK_NONE     WSL: no vsock of ours. The broker listens on TCP (with TLS), the control channel is the input and
 *                    output of wsl.exe, and RUN/forward.sock leads to the way in (wsl.h)
 *
 * Ports of the hybrid kind are this sandbox's own (the folder is), those of the kernel are chosen free.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_VSOCK_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_VSOCK_H

#include <stdint.h>

#include "common/net/endpoint.h"
#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/host/processes.h"
#include "qemu-harness/launcher/host/run_folder.h"

#define VSOCK_BROKER_PORT 1025 /* hybrid only; the control channel has CONTROL_PORT_DEFAULT */

enum vsock_kind { VSOCK_KERNEL, VSOCK_HYBRID, VSOCK_NONE, VSOCK_KIND_COUNT };

extern const char *const vsock_kind_names[VSOCK_KIND_COUNT];

struct vsock {
    enum vsock_kind kind;
    uint32_t guest_cid;
    int device; /* kernel: /dev/vhost-vsock with the CID set; hybrid: connection to the device's socket */
    char path[RUN_PATH_MAX]; /* hybrid: RUN/vsock.sock; none: RUN/forward.sock */
};

/* Chooses and starts. 0 or a negative errno; on success `device` is for QEMU to inherit. */
int vsock_start(struct vsock *vsock, const struct options *options, const struct run_folder *folder,
                struct process_table *processes, struct failure *why);

/* In the place of vsock_start, for WSL. */
void vsock_do_without(struct vsock *vsock, const struct run_folder *folder);

/* Listens for the guest's control channel; *port is what the guest is to dial. The descriptor or a
 * negative errno. */
int vsock_listen_control(const struct vsock *vsock, uint32_t *port, struct failure *why);

/* Accepts from this guest only: kernel: its CID; hybrid: a process of ours. The descriptor
 * (non-blocking), -EAGAIN, or another negative errno for a connection that was refused. */
int vsock_accept(const struct vsock *vsock, int listener);

/* What the broker is to listen on, as its --listen wants it. */
void vsock_broker_listen(const struct vsock *vsock, char out[ENDPOINT_TEXT_MAX]);

/* Begins a connection to a port of the guest: non-blocking, perhaps in progress. On the hybrid kind the
 * caller then writes `CONNECT PORT\n` and reads the answer. The descriptor or a negative errno. */
int vsock_dial(const struct vsock *vsock, uint32_t port);

/* Kernel kind: says whether /dev/vhost-vsock can be had. */
int vsock_open_kernel(uint32_t *guest_cid);

/* The process at the other end of a Unix socket has our uid. */
int vsock_peer_is_ours(int fd);

#endif
