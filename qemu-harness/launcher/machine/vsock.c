/* See vsock.h. The device process is executed under a seccomp-free but capability-free identity of ours;
 * it is found as --vsock-device, beside the build (build/tools/usr/bin) or in PATH. */
#include "qemu-harness/launcher/machine/vsock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/wire/protocol.h"
#include "qemu-harness/launcher/folders/identity.h"
#include "qemu-harness/launcher/host/programs.h"

#define HYBRID_CID 3
#define DEVICE_WAIT_MS 10000
#define LISTEN_BACKLOG 16

const char *const vsock_kind_names[VSOCK_KIND_COUNT] = {
    [VSOCK_KERNEL] = "vhost-vsock",
    [VSOCK_HYBRID] = "vhost-device-vsock",
    [VSOCK_NONE] = "none",
};

static int device_spawn(const struct options *options, const char *socket_path,
                        const char *uds_path, struct process_table *processes, struct failure *why)
{
    char program[PATH_MAX], preload[PATH_MAX], cid[16];
    int result = program_find(program, options->vsock_device, "../tools/usr/bin/vhost-device-vsock",
                              "vhost-device-vsock", why);
    if (result)
        return failure_prefix(why, result, "no /dev/vhost-vsock, and");
    snprintf(cid, sizeof(cid), "%d", HYBRID_CID);
    const char *const argv[] = {program,     "--guest-cid", cid,      "--socket",
                                socket_path, "--uds-path",  uds_path, NULL};
    struct spawn spawn = {.argv = argv,
                          .stdin_fd = -1,
                          .stdout_fd = -1,
                          .stderr_fd = -1,
                          .death_signal = SIGKILL,
                          .prepare = identity_drop_capabilities};
    /* vsock_device_fixes_linux.c; a device of one's own may do without */
    if (program_beside(preload, "codev-vsock-fixes.so") == 0 && access(preload, R_OK) == 0)
        spawn.preload = preload;
    return process_spawn(processes, PROCESS_VSOCK_DEVICE, &spawn, why);
}

/* Connects to the device's socket as soon as it is there. */
static int device_connect(const char *path, struct process_table *processes, struct failure *why)
{
    struct endpoint endpoint = {.kind = ENDPOINT_UNIX};
    snprintf(endpoint.path, sizeof(endpoint.path), "%s", path);
    int64_t deadline = io_monotonic_ns() + DEVICE_WAIT_MS * MILLISECONDS;
    do {
        CLEANUP_FD int fd = endpoint_dial(&endpoint);
        if (fd >= 0) {
            int flags = fcntl(fd, F_GETFL);
            fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
            return fd_steal(&fd);
        }
        process_reap(processes);
        if (process_find(processes, PROCESS_VSOCK_DEVICE)->ended)
            return failure_set(why, ECHILD, "vhost-device-vsock ended at once");
        poll(NULL, 0, 2);
    } while (io_monotonic_ns() < deadline);
    return failure_set(why, ETIMEDOUT, "vhost-device-vsock does not listen");
}

static int start_hybrid(struct vsock *vsock, const struct options *options,
                        const struct run_folder *folder, struct process_table *processes,
                        struct failure *why)
{
    char device_path[RUN_PATH_MAX];
    run_folder_name(folder, device_path, "vhost.sock");
    run_folder_name(folder, vsock->path, "vsock.sock");
    vsock->kind = VSOCK_HYBRID;
    vsock->guest_cid = HYBRID_CID;
    int result = device_spawn(options, device_path, vsock->path, processes, why);
    if (result < 0)
        return result;
    vsock->device = device_connect(device_path, processes, why);
    return vsock->device < 0 ? vsock->device : 0;
}

int vsock_start(struct vsock *vsock, const struct options *options, const struct run_folder *folder,
                struct process_table *processes, struct failure *why)
{
    *vsock = (struct vsock){.kind = VSOCK_KERNEL, .device = -1};
    if (!options->vsock_device)
        vsock->device = vsock_open_kernel(&vsock->guest_cid);
    if (vsock->device >= 0)
        return 0;
    return start_hybrid(vsock, options, folder, processes, why);
}

void vsock_do_without(struct vsock *vsock, const struct run_folder *folder)
{
    *vsock = (struct vsock){.kind = VSOCK_NONE, .device = -1};
    run_folder_name(folder, vsock->path, "forward.sock");
}

static void hybrid_endpoint(const struct vsock *vsock, uint32_t port, struct endpoint *out)
{
    *out = (struct endpoint){.kind = ENDPOINT_UNIX};
    int length = snprintf(out->path, sizeof(out->path), "%.*s_%u", (int)(sizeof(out->path) - 12),
                          vsock->path, port);
    (void)length; /* RUN_FOLDER_PATH_MAX leaves the room */
}

int vsock_listen_control(const struct vsock *vsock, uint32_t *port, struct failure *why)
{
    struct endpoint endpoint = {.kind = ENDPOINT_VSOCK, .cid = VMADDR_CID_ANY, .port = 0};
    if (vsock->kind == VSOCK_HYBRID)
        hybrid_endpoint(vsock, CONTROL_PORT_DEFAULT, &endpoint);
    int fd = endpoint_listen(&endpoint, LISTEN_BACKLOG, why);
    *port = vsock->kind == VSOCK_HYBRID ? CONTROL_PORT_DEFAULT : endpoint.port;
    return fd;
}

int vsock_accept(const struct vsock *vsock, int listener)
{
    struct sockaddr_vm peer = {0};
    socklen_t length = sizeof(peer);
    CLEANUP_FD int fd =
        accept4(listener, vsock->kind == VSOCK_KERNEL ? (void *)&peer : NULL,
                vsock->kind == VSOCK_KERNEL ? &length : NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (vsock->kind == VSOCK_KERNEL && peer.svm_cid != vsock->guest_cid)
        return -EPERM;
    if (vsock->kind == VSOCK_HYBRID && !vsock_peer_is_ours(fd))
        return -EPERM;
    return fd_steal(&fd);
}

void vsock_broker_listen(const struct vsock *vsock, char out[ENDPOINT_TEXT_MAX])
{
    struct endpoint endpoint;
    if (vsock->kind == VSOCK_KERNEL) {
        snprintf(out, ENDPOINT_TEXT_MAX, "vsock:0");
        return;
    }
    if (vsock->kind == VSOCK_NONE) {
        snprintf(out, ENDPOINT_TEXT_MAX, "tcp:127.0.0.1:0");
        return;
    }
    hybrid_endpoint(vsock, VSOCK_BROKER_PORT, &endpoint);
    endpoint_format(&endpoint, out);
}

int vsock_dial(const struct vsock *vsock, uint32_t port)
{
    struct endpoint endpoint = {.kind = ENDPOINT_VSOCK, .cid = vsock->guest_cid, .port = port};
    if (vsock->kind != VSOCK_KERNEL) {
        endpoint = (struct endpoint){.kind = ENDPOINT_UNIX};
        memcpy(endpoint.path, vsock->path, sizeof(endpoint.path));
    }
    return endpoint_dial(&endpoint);
}
