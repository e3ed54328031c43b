/* Starts the guest's vsock and tells its addresses.
 *
 * vhost-device-vsock is named by --vsock-device, or found beside the build (build/tools/usr/bin)
 * or in PATH. It runs without capabilities.
 */
#include "qemu-harness/launcher/machine/vsock_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/wire/protocol.h"
#include "qemu-harness/launcher/folders/identity.h"
#include "qemu-harness/launcher/host/programs.h"

#define HYBRID_CID 3
#define DEVICE_WAIT_MS 10000
#define LISTEN_BACKLOG 16

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
    struct spawn spawn = {.name = "vsock device",
                          .argv = argv,
                          .stdin_fd = -1,
                          .stdout_fd = -1,
                          .stderr_fd = -1,
                          .death_signal = SIGKILL,
                          .prepare = identity_drop_capabilities};
    /* vsock_device_fixes_linux.c, where it was built */
    if (program_beside(preload, "codev-vsock-fixes.so") == 0 && access(preload, R_OK) == 0)
        spawn.preload = preload;
    return process_spawn(processes, PROCESS_HELPER, &spawn, why);
}

/* Connects to the socket of the device, a process with this index, as soon as the socket exists. */
static int device_connect(const char *path, struct process_table *processes, int device,
                          struct failure *why)
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
        if (processes->entries[device].ended)
            return failure_set(why, ECHILD, "vhost-device-vsock ended at once");
        poll(NULL, 0, 2);
    } while (io_monotonic_ns() < deadline);
    return failure_set(why, ETIMEDOUT, "vhost-device-vsock does not listen after %d s",
                       DEVICE_WAIT_MS / 1000);
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
    vsock->device = device_connect(device_path, processes, result, why);
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

static void hybrid_endpoint(const struct vsock *vsock, uint32_t port, struct endpoint *out)
{
    *out = (struct endpoint){.kind = ENDPOINT_UNIX};
    int length = snprintf(out->path, sizeof(out->path), "%.*s_%u", (int)(sizeof(out->path) - 12),
                          vsock->path, port);
    (void)length; /* RUN_FOLDER_PATH_MAX leaves the room */
}

void vsock_describe(const struct vsock *vsock, struct guest_link *link)
{
    static const char *const dial[] = {"vsock:2", NULL};
    static char way_in_listen[ENDPOINT_TEXT_MAX];
    struct endpoint broker;
    snprintf(way_in_listen, sizeof(way_in_listen), "vsock:%d", WAY_IN_VSOCK_PORT);
    *link = (struct guest_link){.broker_dial = dial, .way_in_listen = way_in_listen};
    if (vsock->kind == VSOCK_KERNEL) {
        snprintf(link->broker_listen, sizeof(link->broker_listen), "vsock:0");
        snprintf(link->broker_peer_cid, sizeof(link->broker_peer_cid), "%u", vsock->guest_cid);
        link->way_in = (struct endpoint){
            .kind = ENDPOINT_VSOCK, .cid = vsock->guest_cid, .port = WAY_IN_VSOCK_PORT};
        return;
    }
    hybrid_endpoint(vsock, VSOCK_BROKER_PORT, &broker);
    endpoint_format(&broker, link->broker_listen);
    link->broker_port = VSOCK_BROKER_PORT;
    link->way_in.kind = ENDPOINT_UNIX;
    memcpy(link->way_in.path, vsock->path, sizeof(link->way_in.path));
    link->way_in_hybrid = true;
}

int vsock_listen_control(const struct vsock *vsock, uint32_t *port, struct failure *why)
{
    struct endpoint endpoint;
    if (vsock->kind == VSOCK_HYBRID)
        hybrid_endpoint(vsock, CONTROL_PORT_DEFAULT, &endpoint);
    else if (endpoint_parse_listen(&endpoint, "vsock:0", why))
        return -EINVAL;
    int fd = endpoint_listen(&endpoint, LISTEN_BACKLOG, why);
    *port = vsock->kind == VSOCK_HYBRID ? CONTROL_PORT_DEFAULT : endpoint.port;
    return fd;
}
