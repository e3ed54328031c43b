/* A short-lived child makes the folder. It shares only our descriptors (CLONE_FILES): it enters a
 * new mount namespace, makes the tmpfs its root, binds both sockets there and puts the three
 * descriptors at numbers that were reserved for them. After its end only these keep the namespace
 * alive.
 */
#include "init/relay/relay_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/net/endpoint.h"
#include "common/os/child_linux.h"
#include "common/os/cleanup.h"
#include "init/system/empty_root.h"
#include "init/system/mount_api.h"

#define FOLDER_BACKLOG 1024
#define FOLDER_FLAGS (MOUNT_FLAG_NOSUID | MOUNT_FLAG_NODEV | MOUNT_FLAG_NOEXEC)

static int make_tmpfs(const struct account *owner)
{
    char uid[16], gid[16];
    CLEANUP_FD int context = mount_context_open("tmpfs");
    int result = context;

    snprintf(uid, sizeof(uid), "%u", owner->uid);
    snprintf(gid, sizeof(gid), "%u", owner->gid);
    if (result >= 0)
        result = mount_context_string(context, "mode", "0700");
    if (result >= 0)
        result = mount_context_string(context, "uid", uid);
    if (result >= 0)
        result = mount_context_string(context, "gid", gid);
    if (result >= 0)
        result = mount_context_string(context, "nr_inodes", "3");
    return result < 0 ? result : mount_context_create(context, FOLDER_FLAGS);
}

/* Listens at the path, and leaves the descriptor at the number `into`. */
static int make_listener(const char *path, const struct account *owner, int into,
                         struct failure *why)
{
    struct endpoint endpoint = {.kind = ENDPOINT_UNIX};

    snprintf(endpoint.path, sizeof(endpoint.path), "%s", path);
    CLEANUP_FD int fd = endpoint_listen(&endpoint, FOLDER_BACKLOG, why);
    if (fd < 0)
        return fd;
    if (chown(path, owner->uid, owner->gid) < 0 || dup3(fd, into, O_CLOEXEC) < 0)
        return failure_errno(why, errno, "the socket %s", path);
    return 0;
}

struct work {
    const struct relay_folder *folder;
    const struct account *owner;
};

static int furnish(void *argument, int *report_fd, struct failure *why)
{
    const struct work *work = argument;
    const struct relay_folder *folder = work->folder;
    const struct account *owner = work->owner;

    (void)report_fd;
    if (unshare(CLONE_NEWNS) < 0)
        return failure_errno(why, errno, "new mount namespace");
    CLEANUP_FD int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (own < 0 || dup3(own, folder->namespace_fd, O_CLOEXEC) < 0)
        return failure_errno(why, errno, "open /proc/self/ns/mnt");
    CLEANUP_FD int root = make_tmpfs(owner);
    if (root < 0)
        return failure_errno(why, -root, "make a tmpfs");
    int result = empty_root_pivot(root, why);
    if (result == 0)
        result = make_listener(RELAY_FOLDER_OUT, owner, folder->out_fd, why);
    if (result == 0)
        result = make_listener(RELAY_FOLDER_IN, owner, folder->in_fd, why);
    if (result == 0 &&
        mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
              NULL) < 0)
        return failure_errno(why, errno, "make it read-only");
    return result;
}

int relay_folder_make(struct relay_folder *folder, const struct account *owner, struct failure *why)
{
    /* reserved numbers: the child replaces what is there */
    CLEANUP_FD int first = open("/", O_PATH | O_CLOEXEC);
    CLEANUP_FD int second = open("/", O_PATH | O_CLOEXEC);
    CLEANUP_FD int third = open("/", O_PATH | O_CLOEXEC);

    if (first < 0 || second < 0 || third < 0)
        return failure_errno(why, errno, "open /");
    *folder = (struct relay_folder){.namespace_fd = first, .out_fd = second, .in_fd = third};
    struct work work = {.folder = folder, .owner = owner};
    int result = child_work(furnish, &work, CLONE_FILES, CHILD_NO_LIMIT, why);
    if (result < 0)
        return failure_prefix(why, result, "the folder of the relays' sockets");
    (void)fd_steal(&first);
    (void)fd_steal(&second);
    (void)fd_steal(&third);
    return 0;
}
