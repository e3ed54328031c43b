/* Starts and confines virtiofsd. In the child, before exec:
 *
 *     its own mount, network and IPC namespace: unshare(2)
 *     a private copy of the mount, nosuid, nodev, read-only if asked: open_tree(2)
 *     the account's ids, and only the capabilities for chroot(2), which it drops
 *
 * The listening socket is made here and inherited (--fd). So virtiofsd needs no path and no lock
 * file, and may be slow to start: QEMU's connection waits in the backlog.
 */
#include "qemu-harness/launcher/folders/file_server.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/endpoint.h"
#include "common/os/cleanup.h"
#include "qemu-harness/launcher/host/programs.h"

#define QEMU_VIRTIOFSD "/usr/lib/qemu/virtiofsd"
#define OPEN_FILES_WANTED                                                                          \
    (1u << 20) /* virtiofsd keeps a file open for each inode that the guest knows */

int file_server_choose(struct file_server *server, const struct options *options,
                       struct failure *why)
{
    server->kind = options->file_server;
    if (server->kind == FILE_SERVER_9P)
        return 0;
    const char *chosen = options->virtiofsd ? options->virtiofsd : QEMU_VIRTIOFSD;
    int found = program_find(server->program, chosen, NULL, "virtiofsd", why);
    if (server->kind == FILE_SERVER_VIRTIOFS) {
        if (!found && geteuid() != 0)
            return failure_set(why, EPERM,
                               "virtiofsd can only be run by root: use --file-server 9p");
        return found;
    }
    server->kind = !found && geteuid() == 0 ? FILE_SERVER_VIRTIOFS : FILE_SERVER_9P;
    return 0;
}

struct server_child {
    struct identity identity;
    int folder; /* the checked folder; replaced by the private copy under the same number */
    bool readonly;
};

/* Replaces the folder's descriptor by a private copy of its mount, which is attached nowhere. */
static int bind_folder(const struct server_child *child, struct failure *why)
{
    CLEANUP_FD int tree = open_tree(
        child->folder, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return failure_errno(why, errno, "open_tree");
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                (child->readonly ? MOUNT_ATTR_RDONLY : 0)};
    if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes)))
        return failure_errno(why, errno, "mount_setattr");
    if (dup2(tree, child->folder) < 0)
        return failure_errno(why, errno, "dup2");
    /* after the copy: a mount can be copied only in the namespace that it belongs to */
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC))
        return failure_errno(why, errno, "unshare");
    return 0;
}

static void raise_open_files(void)
{
    struct rlimit limit = {.rlim_cur = OPEN_FILES_WANTED, .rlim_max = OPEN_FILES_WANTED};
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 || getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int server_prepare(void *context, struct failure *why)
{
    const struct server_child *child = context;
    raise_open_files();
    int result = bind_folder(child, why);
    return result ? result : identity_take(&child->identity, why);
}

static int server_spawn(const struct file_server *server, const struct mount *mount,
                        const struct account *account, int listener,
                        struct process_table *processes, int diagnostics, struct failure *why)
{
    char socket_option[32], source[64];
    snprintf(socket_option, sizeof(socket_option), "--fd=%d", listener);
    /* "/.": virtiofsd refuses a symbolic link, as /proc/self/fd/N is one */
    snprintf(source, sizeof(source), "source=/proc/self/fd/%d/.", mount->fd);
    const char *const argv[] = {
        server->program,
        socket_option,
        "-f",
        "-o",
        source,
        "-o",
        "sandbox=chroot",
        "-o",
        "cache=auto,no_xattr,no_posix_lock,no_flock,announce_submounts",
        "-o",
        "modcaps=-chown:-dac_override:-fowner:-fsetid:-setgid:-setuid:-mknod:-setfcap",
        "--rlimit-nofile=0",
        NULL};
    int keep[] = {listener, mount->fd};
    struct server_child child = {
        .identity = {.account = *account, .extra_group = (gid_t)-1, .keep_chroot = true},
        .folder = mount->fd,
        .readonly = mount->spec.readonly,
    };
    struct spawn spawn = {.name = "file server",
                          .argv = argv,
                          .stdin_fd = -1,
                          .stdout_fd = diagnostics,
                          .stderr_fd = diagnostics,
                          .keep = keep,
                          .keep_count = ARRAY_LENGTH(keep),
                          .death_signal = SIGKILL,
                          .prepare = server_prepare,
                          .context = &child};
    return process_spawn(processes, PROCESS_HELPER, &spawn, why);
}

/* Listens, starts the server, connects for QEMU, and removes the socket's name. */
static int server_start_one(const struct file_server *server, struct mount *mount,
                            const struct account *account, const struct run_folder *folder,
                            struct process_table *processes, int diagnostics, struct failure *why)
{
    struct endpoint endpoint = {.kind = ENDPOINT_UNIX};
    run_folder_name(folder, endpoint.path, "virtiofs.sock");
    CLEANUP_FD int listener = endpoint_listen(&endpoint, 1, why);
    if (listener < 0)
        return listener;
    fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) & ~O_NONBLOCK);
    CLEANUP_FD int connection = endpoint_dial(&endpoint);
    unlink(endpoint.path);
    if (connection < 0)
        return failure_errno(why, -connection, "connect to virtiofsd");
    fcntl(connection, F_SETFL, fcntl(connection, F_GETFL) & ~O_NONBLOCK);
    int result = server_spawn(server, mount, account, listener, processes, diagnostics, why);
    if (result < 0)
        return failure_prefix(why, result, "mount %s", mount->real);
    mount->server = fd_steal(&connection);
    return 0;
}

int file_server_start(const struct file_server *server, struct mount_table *mounts,
                      const struct account *account, const struct run_folder *folder,
                      struct process_table *processes, int diagnostics, struct failure *why)
{
    if (server->kind != FILE_SERVER_VIRTIOFS)
        return 0;
    for (unsigned i = 0; i < mounts->count; i++) {
        int result = server_start_one(server, &mounts->entries[i], account, folder, processes,
                                      diagnostics, why);
        if (result)
            return result;
    }
    return 0;
}
