/* Breakout: namespaces, mounts and links. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/probe/breakout.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static long leave(const struct breakout_vector *vector)
{
    return unshare((int)vector->number);
}

static long child_elsewhere(const struct breakout_vector *vector)
{
    long pid = syscall(SYS_clone, vector->number | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return pid;
}

/* Enters a namespace of PID 1 by its file, or, where that is not visible, the caller's own, which
 * must be refused as well. */
static long enter(const struct breakout_vector *vector)
{
    char path[64];
    CLEANUP_FD int fd = open(breakout_path(vector), O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/%s", vector->path);
    CLEANUP_FD int own = fd < 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return setns(fd < 0 ? own : fd, 0);
}

static long enter_by_pidfd(const struct breakout_vector *vector)
{
    CLEANUP_FD int process = (int)syscall(SYS_pidfd_open, breakout_pid(vector), 0);
    return process < 0 ? -1 : setns(process, (int)vector->number);
}

#define NEW(text, flag)                                                                            \
    {.name = "a new " text " namespace", .attempt = leave, .number = (flag)},                      \
    {                                                                                              \
        .name = "a child in a new " text " namespace", .attempt = child_elsewhere,                 \
        .number = (flag)                                                                           \
    }

static const struct breakout_vector namespaces[] = {
    NEW("user", CLONE_NEWUSER),
    NEW("mount", CLONE_NEWNS),
    NEW("network", CLONE_NEWNET),
    NEW("PID", CLONE_NEWPID),
    NEW("UTS", CLONE_NEWUTS),
    NEW("IPC", CLONE_NEWIPC),
    NEW("cgroup", CLONE_NEWCGROUP),
    {.name = "a new time namespace", .attempt = leave, .number = CLONE_NEWTIME},
    {.name = "PID 1's network namespace",
     .attempt = enter,
     .path = "ns/net",
     .target = BREAKOUT_INIT},
    {.name = "PID 1's mount namespace",
     .attempt = enter,
     .path = "ns/mnt",
     .target = BREAKOUT_INIT},
    {.name = "PID 1's PID namespace", .attempt = enter, .path = "ns/pid", .target = BREAKOUT_INIT},
    {.name = "the agent's mount namespace, by descriptor",
     .attempt = enter_by_pidfd,
     .target = BREAKOUT_AGENT,
     .number = CLONE_NEWNS},
};
const struct breakout_group breakout_namespaces = {"namespaces", namespaces,
                                                   ARRAY_LENGTH(namespaces), 0};

static long bind_over(const struct breakout_vector *vector)
{
    return mount("/tmp", vector->path, NULL, MS_BIND, NULL);
}

/* pivot_root needs a mount as the new root. Where that mount is refused, the call must still be
 * refused. */
static long other_root(const struct breakout_vector *vector)
{
    (void)vector;
    (void)mount("tmpfs", "/mnt", "tmpfs", 0, NULL);
    return syscall(SYS_pivot_root, "/mnt", "/mnt");
}

/* fsopen to fsmount to move_mount: a whole file system without mount(2). */
static long new_mount_calls(const struct breakout_vector *vector)
{
    (void)vector;
    CLEANUP_FD int context = (int)syscall(SYS_fsopen, "tmpfs", 0);
    if (context < 0 ||
        syscall(SYS_fsconfig, context, 6 /* FSCONFIG_CMD_CREATE */, NULL, NULL, 0) < 0)
        return -1;
    CLEANUP_FD int made = (int)syscall(SYS_fsmount, context, 0, 0);
    return made < 0 ? -1
                    : syscall(SYS_move_mount, made, "", AT_FDCWD, "/mnt", 4 /* F_EMPTY_PATH */);
}

static long fs_pick(const struct breakout_vector *vector)
{
    CLEANUP_FD int fd = (int)syscall(SYS_fspick, AT_FDCWD, vector->path, 0);
    return fd < 0 ? -1 : 0;
}

static long other_attributes(const struct breakout_vector *vector)
{
    uint64_t attributes[4] = {0, 4 /* MOUNT_ATTR_NODEV */, 0, 0};
    return syscall(SYS_mount_setattr, AT_FDCWD, vector->path, 0, attributes, sizeof(attributes));
}

static long device_node(const struct breakout_vector *vector)
{
    const char *path = breakout_path(vector);
    dev_t device = vector->number ? makedev(254, 0) : makedev(1, 1);
    if (mknod(path, (vector->number ? S_IFBLK : S_IFCHR) | 0600, device) < 0)
        return -1;
    return unlink(path);
}

/* A link that the user of the host made in a shared folder: it must lead to a file of the guest,
 * not of the host. */
static long through_link(const struct breakout_vector *vector)
{
    return breakout_read(vector);
}

static long above(const struct breakout_vector *vector)
{
    char byte;
    CLEANUP_FD int folder = open(breakout_place.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_FD int file = folder < 0 ? -1 : openat(folder, vector->path, O_RDONLY | O_CLOEXEC);
    return file < 0 ? -1 : read(file, &byte, 1);
}

static long file_over_readonly(const struct breakout_vector *vector)
{
    CLEANUP_FD int fd = open(breakout_path(vector), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    return unlink(breakout_path(vector));
}

static const struct breakout_vector mounts[] = {
    {.name = "mount a tmpfs", .path = "mount"},
    {.name = "bind a folder over /etc", .attempt = bind_over, .path = "/etc"},
    {.name = "bind a folder over /proc", .attempt = bind_over, .path = "/proc"},
    {.name = "remount the root", .path = "remount"},
    {.name = "unmount /proc", .path = "umount"},
    {.name = "pivot_root", .attempt = other_root},
    {.name = "chroot", .path = "chroot"},
    {.name = "fsopen", .path = "fsopen"},
    {.name = "a mount by the new calls", .attempt = new_mount_calls},
    {.name = "fspick of /proc", .attempt = fs_pick, .path = "/proc"},
    {.name = "a copy of the mount tree", .path = "open-tree"},
    {.name = "other flags for /tmp", .attempt = other_attributes, .path = "/tmp"},
    {.name = "a character device in /tmp",
     .attempt = device_node,
     .path = "/tmp/breakout-character"},
    {.name = "a block device in /tmp",
     .attempt = device_node,
     .path = "/tmp/breakout-block",
     .number = 1},
    {.name = "a device in a shared folder",
     .attempt = device_node,
     .path = "work/device",
     .number = 1},
    {.name = "a character device that the host put there",
     .attempt = breakout_open_read,
     .path = "character"},
    {.name = "a block device that the host put there",
     .attempt = breakout_open_read,
     .path = "block"},
    {.name = "a link to /etc/shadow that the host put there",
     .attempt = through_link,
     .path = "link-to-shadow"},
    {.name = "a link to PID 1's root that the host put there",
     .attempt = breakout_open_read,
     .path = "link-to-root"},
    {.name = "a file of the host above the shared folder",
     .attempt = above,
     .path = "../../../../../../root/.profile",
     .cannot = "the machine has no file of the host above it"},
    {.name = "a file in a folder shared read-only",
     .attempt = file_over_readonly,
     .path = "breakout-new"},
};
const struct breakout_group breakout_mounts = {"mounts and shared folders", mounts,
                                               ARRAY_LENGTH(mounts), 0};
