/* Attempts to gain rights: root, namespaces, mounts, devices. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/probe/probe.h"

static long try_setuid0(void)
{
    static const uint32_t all_capabilities[6] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
    uint32_t header[2] = {0x20080522, 0}; /* _LINUX_CAPABILITY_VERSION_3 */
    if (setuid(0) == 0 || setgid(0) == 0 || setresuid(-1, 0, -1) == 0 || setgroups(0, NULL) == 0)
        return 0;
    int error = errno;
    if (syscall(SYS_capset, header, all_capabilities) == 0 || geteuid() == 0)
        return 0;
    errno = error;
    return -1;
}

static long try_userns(void)
{
    return unshare(CLONE_NEWUSER);
}

/* By clone, whose flags another rule has to look at. */
static long try_userns_clone(void)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return pid;
}

static long try_netns(void)
{
    return unshare(CLONE_NEWNET);
}

static long try_mountns(void)
{
    return unshare(CLONE_NEWNS);
}

static long try_setns(void)
{
    CLEANUP_FD int fd = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC); /* our own must be refused as well */
    return fd < 0 ? -1 : setns(fd, 0);
}

static long try_mount(void)
{
    return mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
}

static long try_remount(void)
{
    return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL);
}

static long try_umount(void)
{
    return umount2("/proc", MNT_DETACH);
}

static long try_fsopen(void)
{
    CLEANUP_FD int fd = (int)syscall(SYS_fsopen, "tmpfs", 0);
    return fd < 0 ? -1 : 0;
}

static long try_open_tree(void)
{
    CLEANUP_FD int fd = (int)syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */);
    return fd < 0 ? -1 : 0;
}

static long try_pivot_root(void)
{
    return syscall(SYS_pivot_root, "/", "/");
}

static long try_chroot(void)
{
    return chroot("/tmp");
}

static long try_mknod(void)
{
    const char *path = "/tmp/probe-device";
    long result = mknod(path, S_IFCHR | 0600, makedev(1, 1)); /* /dev/mem */
    if (result == 0)
        unlink(path);
    return result;
}

/* Runs a set-uid program of root, which must not get root's uid here. */
static long try_setuid_file(void)
{
    const char *path = "/tmp/probe-setuid";
    CLEANUP_FD int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    if (fd < 0 || fchown(fd, 0, 0) < 0) {
        int error = errno;
        unlink(path);
        errno = error;
        return -1;
    }
    unlink(path);
    return 0;
}

static int probe_open(int argc, char **argv)
{
    int write = argc > 2 && strcmp(argv[2], "write") == 0;
    CLEANUP_FD int fd =
        open(argv[1], (write ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return probe_report(probe_words(argc, argv), fd < 0 ? errno : 0, -1);
}

static const struct probe_verb verbs[] = {
    {"setuid0", "", "root by setuid, setgid, setgroups or capset", try_setuid0, NULL, 0, 0},
    {"setuid-file", "", "a program that belongs to root", try_setuid_file, NULL, 0, 0},
    {"userns", "", "a user namespace by unshare", try_userns, NULL, 0, 0},
    {"userns-clone", "", "a user namespace by clone", try_userns_clone, NULL, 0, 0},
    {"netns", "", "a network namespace", try_netns, NULL, 0, 0},
    {"mountns", "", "a mount namespace", try_mountns, NULL, 0, 0},
    {"setns", "", "into PID 1's network namespace", try_setns, NULL, 0, 0},
    {"mount", "", "a tmpfs over /tmp", try_mount, NULL, 0, 0},
    {"remount", "", "the root, with other flags", try_remount, NULL, 0, 0},
    {"umount", "", "/proc away", try_umount, NULL, 0, 0},
    {"fsopen", "", "the new mount calls", try_fsopen, NULL, 0, 0},
    {"open-tree", "", "a copy of the mount tree", try_open_tree, NULL, 0, 0},
    {"pivot-root", "", "another root", try_pivot_root, NULL, 0, 0},
    {"chroot", "", "another root for this process", try_chroot, NULL, 0, 0},
    {"mknod", "", "a device node for the machine's memory", try_mknod, NULL, 0, 0},
    {"open", "FILE [write]", "a file, for example a device node", NULL, probe_open, 1, 2},
};
const struct probe_verbs privilege_verbs = {verbs, ARRAY_LENGTH(verbs)};
