/* The self-test's checks of rights: identity, namespaces, files, other processes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/proof/self_test_internal.h"

bool check_drop_identity(const struct self_test_context *context, struct self_test_detail *detail)
{
    struct failure why;
    CLEANUP_FD int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

    if (status < 0)
        return self_test_say(detail, false, "/proc/self/status: %s", strerror(errno));
    if (drop_check_identity(context->plan, status, &why) < 0)
        return self_test_say(detail, false, "%s", why.text);
    return self_test_say(detail, true, "uid %u, gid %u, no capability, no group",
                         context->plan->account->uid, context->plan->account->gid);
}

bool check_no_root_again(const struct self_test_context *context, struct self_test_detail *detail)
{
    struct failure why;

    (void)context;
    if (drop_check_no_way_back(&why) < 0)
        return self_test_say(detail, false, "%s", why.text);
    return self_test_say(detail, true, "setuid, setgid, setgroups, capset are refused");
}

bool check_no_new_namespace(const struct self_test_context *context,
                            struct self_test_detail *detail)
{
    (void)context;
    return self_test_refused(detail, unshare(CLONE_NEWUSER), "unshare(CLONE_NEWUSER)");
}

bool check_no_mount(const struct self_test_context *context, struct self_test_detail *detail)
{
    (void)context;
    return self_test_refused(detail, mount("tmpfs", "/tmp", "tmpfs", 0, NULL), "mount");
}

bool check_no_io_uring(const struct self_test_context *context, struct self_test_detail *detail)
{
    char parameters[256] = {0}; /* struct io_uring_params has 120 bytes */

    (void)context;
    return self_test_refused(detail, syscall(SYS_io_uring_setup, 1, parameters), "io_uring_setup");
}

/* True for what every Linux program expects to be there (Documentation/admin-guide/devices.txt). */
static bool is_usual_device(const char *name)
{
    static const char *const usual[] = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"};

    for (size_t i = 0; i < ARRAY_LENGTH(usual); i++) {
        if (strcmp(name, usual[i]) == 0)
            return true;
    }
    return false;
}

/* The bare system call: the C library's would bring the means to ask for the effective ids, which
 * are the same. */
static bool may_access(int directory, const char *name, int mode)
{
    return syscall(SYS_faccessat, directory, name, mode) == 0;
}

bool check_no_device_node(const struct self_test_context *context, struct self_test_detail *detail)
{
    struct stat status;
    DIR *devices = opendir("/dev");

    (void)context;
    if (!devices)
        return self_test_say(detail, false, "/dev: %s", strerror(errno));
    for (const struct dirent *entry; (entry = readdir(devices));) {
        if (fstatat(dirfd(devices), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode)) ||
            is_usual_device(entry->d_name))
            continue;
        if (may_access(dirfd(devices), entry->d_name, R_OK) ||
            may_access(dirfd(devices), entry->d_name, W_OK)) {
            self_test_say(detail, false, "/dev/%.60s can be opened", entry->d_name);
            closedir(devices);
            return false;
        }
    }
    closedir(devices);
    return self_test_refused(detail, mknod("/tmp/codev-self-test", S_IFCHR | 0600, makedev(1, 1)),
                             "mknod");
}

bool check_system_not_writable(const struct self_test_context *context,
                               struct self_test_detail *detail)
{
    static const char *const places[] = {"/codev-self-test", "/etc/codev-self-test",
                                         "/usr/codev-self-test", "/run/codev/codev-self-test",
                                         "/dev/codev-self-test"};

    (void)context;
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        CLEANUP_FD int file = open(places[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (!self_test_refused(detail, file, places[i]))
            return false;
    }
    return true;
}

/* By the group that /proc/self/cgroup names ("0::PATH"), and the root group. */
bool check_cgroup_locked(const struct self_test_context *context, struct self_test_detail *detail)
{
    static const char *const files[] = {"cgroup.procs", "pids.max", "memory.max",
                                        "cgroup.subtree_control"};
    char text[1024], path[1200];
    char *own = text;

    if (io_read_file(AT_FDCWD, "/proc/self/cgroup", 0, text, sizeof(text)) < 0)
        return self_test_say(detail, false, "/proc/self/cgroup: %s", strerror(errno));
    while (*own != '\0' && strncmp(own, "0::", 3) != 0) /* behind those of version 1, in WSL */
        own += strcspn(own, "\n") + (own[strcspn(own, "\n")] == '\n');
    if (*own == '\0' && context->config->place == PLACE_MACHINE)
        return self_test_say(detail, false, "/proc/self/cgroup names no cgroup of version 2");
    if (*own == '\0')
        return self_test_say(detail, true, "there is no cgroup of version 2");
    own[strcspn(own, "\n")] = '\0';
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", own + 3, files[i]);
        CLEANUP_FD int file = open(path, O_WRONLY | O_CLOEXEC);
        if (!self_test_refused(detail, file, path))
            return false;
    }
    CLEANUP_FD int root = open("/sys/fs/cgroup/cgroup.procs", O_WRONLY | O_CLOEXEC);
    return self_test_refused(detail, root, "/sys/fs/cgroup/cgroup.procs");
}

/* Every access to another process's memory and descriptors must fail. */
static bool process_is_closed(pid_t pid, struct self_test_detail *detail)
{
    static const char *const files[] = {"mem", "maps", "environ", "fd", "root", "stack", "syscall"};
    char path[40], byte;
    struct iovec here = {.iov_base = &byte, .iov_len = 1};
    struct iovec there = {.iov_base = &byte, .iov_len = 1}; /* init's stack, where we come from */

    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
        CLEANUP_FD int file = open(path, O_RDONLY | O_CLOEXEC);
        if (!self_test_refused(detail, file, path))
            return false;
    }
    if (!self_test_refused(detail, process_vm_readv(pid, &here, 1, &there, 1, 0),
                           "process_vm_readv"))
        return false;
    return self_test_refused(detail, ptrace(PTRACE_SEIZE, pid, NULL, NULL), "ptrace");
}

bool check_agent_memory(const struct self_test_context *context, struct self_test_detail *detail)
{
    if (!process_is_closed(context->init_pid, detail))
        return false;
    return context->agent_pid <= 0 || process_is_closed(context->agent_pid, detail);
}
