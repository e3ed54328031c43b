/* Ways to more rights: root, namespaces, mounts, devices, other processes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
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

/* A program that changes the account to root must not do so here. */
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

/* Finds a process by its number or its name (/proc/PID/comm). */
static pid_t find_process(const char *text)
{
    if (*text >= '0' && *text <= '9')
        return (pid_t)probe_number(text, INT32_MAX);
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;
    while (folder && !found && (entry = readdir(folder))) {
        char path[300], name[64];
        snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            io_read_file(AT_FDCWD, path, 0, name, sizeof(name)) < 0)
            continue;
        name[strcspn(name, "\n")] = '\0';
        if (strcmp(name, text) == 0)
            found = atoi(entry->d_name);
    }
    if (folder)
        closedir(folder);
    if (!found)
        probe_die("no process '%s'", text);
    return found;
}

static int probe_ptrace(int argc, char **argv)
{
    pid_t pid = find_process(argv[1]);
    int error = ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0 ? errno : 0;
    if (error == 0) {
        waitpid(pid, NULL, 0);
        ptrace(PTRACE_DETACH, pid, NULL, NULL);
    }
    return probe_report(probe_words(argc, argv), error, -1);
}

/* 0 when the file of that process can be opened and gives a byte, else an errno. */
static int read_process_file(pid_t pid, const char *name)
{
    char path[64], byte;
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    if (strcmp(name, "fd") == 0) {
        DIR *folder = opendir(path);
        if (!folder)
            return errno;
        closedir(folder);
        return 0;
    }
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    /* `mem` opens where it may be read; its first page is never mapped */
    return strcmp(name, "mem") == 0 || read(fd, &byte, 1) >= 0 ? 0 : errno;
}

static int read_process_memory(pid_t pid)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)4096, 1};
    /* rights are checked first, so EFAULT (nothing is mapped there) means that they were granted */
    return process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno != EFAULT ? errno : 0;
}

static int probe_procmem(int argc, char **argv)
{
    static const char *const files[] = {"mem", "maps", "environ", "fd", "stack", "auxv"};
    pid_t pid = find_process(argv[1]);
    int status = PROBE_REFUSED;
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        char what[128];
        snprintf(what, sizeof(what), "procmem %s %s", argv[1], files[i]);
        int result = probe_report(what, read_process_file(pid, files[i]), -1);
        status = result > status ? result : status;
    }
    int result = probe_report("procmem process_vm_readv", read_process_memory(pid), -1);
    (void)argc;
    return result > status ? result : status;
}

static int probe_kill(int argc, char **argv)
{
    pid_t pid = find_process(argv[1]);
    return probe_report(probe_words(argc, argv), kill(pid, 0) < 0 ? errno : 0, -1);
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
    {"ptrace", "PID|NAME", "attach to a process", NULL, probe_ptrace, 1, 1},
    {"procmem", "PID|NAME", "a process's memory and what /proc tells of it", NULL, probe_procmem, 1,
     1},
    {"kill", "PID|NAME", "a signal to a process (number 0)", NULL, probe_kill, 1, 1},
};
const struct probe_verbs privilege_verbs = {verbs, ARRAY_LENGTH(verbs)};
