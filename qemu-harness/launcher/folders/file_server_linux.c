/* See file_server.h: how a virtiofsd is confined. In the child, before exec:
 *
 *     a mount, network and IPC namespace of its own: unshare(2)
 *     a private copy of the folder's mount, without set-uid and devices, read-only if asked: open_tree(2)
 *     the account's ids, and no capability but what virtiofsd needs for chroot(2), which it then drops
 *
 * The listening socket is made here and inherited (--fd): virtiofsd needs no path, no lock file and may
 * be slow to start, since QEMU's connection waits in the backlog.
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
    (1u << 20) /* virtiofsd keeps one open for each file that the guest knows */

int file_server_choose(struct file_server *server, const struct options *options,
                       struct failure *why)
{
    for (unsigned i = 0; i < OPTION_REPEAT_MAX; i++)
        server->connections[i] = -1;
    server->kind = options->file_server;
    if (server->kind == FILE_SERVER_9P)
        return 0;
    const char *chosen = options->virtiofsd ? options->virtiofsd : QEMU_VIRTIOFSD;
    int found = program_find(server->program, chosen, NULL, "virtiofsd", why);
    if (server->kind == FILE_SERVER_VIRTIOFS) {
        if (!found && geteuid() != 0)
            return failure_set(why, EPERM, "virtiofsd can be run by root only: use 9p");
        return found;
    }
    server->kind = !found && geteuid() == 0 ? FILE_SERVER_VIRTIOFS : FILE_SERVER_9P;
    return 0;
}

struct server_child {
    struct identity identity;
    int folder; /* what was judged; becomes the private copy under the same number */
    bool readonly;
};

/* Puts a private copy of the mount in the place of the folder's descriptor. It is attached nowhere: no
 * path leads to it. */
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
    /* only now: what is copied must belong to the namespace that one is in */
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
    /* "/.": virtiofsd wants a folder there, not the symbolic link that /proc has */
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
    struct spawn spawn = {.argv = argv,
                          .stdin_fd = -1,
                          .stdout_fd = diagnostics,
                          .stderr_fd = diagnostics,
                          .keep = keep,
                          .keep_count = ARRAY_LENGTH(keep),
                          .death_signal = SIGKILL,
                          .prepare = server_prepare,
                          .context = &child};
    return process_spawn(processes, PROCESS_FILE_SERVER, &spawn, why);
}

/* Listens, starts the server, connects for QEMU, and takes the socket's name away again. */
static int server_start_one(struct file_server *server, const struct mount_table *mounts,
                            unsigned index, const struct account *account,
                            const struct run_folder *folder, struct process_table *processes,
                            int diagnostics, struct failure *why)
{
    const struct mount *mount = &mounts->entries[index];
    struct endpoint endpoint = {.kind = ENDPOINT_UNIX};
    run_folder_name(folder, endpoint.path, mount->tag);
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
    server->connections[index] = fd_steal(&connection);
    return 0;
}

int file_server_start(struct file_server *server, const struct mount_table *mounts,
                      const struct account *account, const struct run_folder *folder,
                      struct process_table *processes, int diagnostics, struct failure *why)
{
    if (server->kind == FILE_SERVER_9P)
        return 0;
    for (unsigned i = 0; i < mounts->count; i++) {
        int result =
            server_start_one(server, mounts, i, account, folder, processes, diagnostics, why);
        if (result)
            return result;
    }
    return 0;
}

void file_server_release(struct file_server *server)
{
    for (unsigned i = 0; i < OPTION_REPEAT_MAX; i++)
        fd_close(&server->connections[i]);
}
