/* Breakout: files of the kernel and the system: devices, /proc, /sys, cgroups, what belongs to
 * root. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/probe/breakout.h"

/* The kernel shows all addresses in its symbol table as 0 to readers without the right to see
 * them. */
static long kernel_addresses(const struct breakout_vector *vector)
{
    char text[4096];
    CLEANUP_FD int fd = open(vector->path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));
    if (got < 0)
        return -1;
    errno = EPERM;
    for (ssize_t i = 0; i < got; i++) {
        int starts_line = i == 0 || text[i - 1] == '\n';
        if (starts_line && strspn(text + i, "0") < 16)
            return 0;
    }
    return -1;
}

static long create_file(const struct breakout_vector *vector)
{
    CLEANUP_FD int fd = open(vector->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    return unlink(vector->path);
}

static long remove_file(const struct breakout_vector *vector)
{
    char moved[256];
    snprintf(moved, sizeof(moved), "%s.moved", vector->path);
    return rename(vector->path, moved) < 0 ? -1 : rename(moved, vector->path);
}

static long make_folder(const struct breakout_vector *vector)
{
    return mkdir(vector->path, 0700) < 0 ? -1 : rmdir(vector->path);
}

/* The file `path` of the cgroup that we are in. */
static long write_own_group(const struct breakout_vector *vector)
{
    char own[256], path[512];
    ssize_t got = io_read_file(AT_FDCWD, "/proc/self/cgroup", 0, own, sizeof(own));
    if (got < 4 || strncmp(own, "0::", 3) != 0) {
        errno = EINVAL;
        return -1;
    }
    own[strcspn(own, "\n")] = '\0';
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s%s", own + 3, own[4] ? "/" : "",
             vector->path + 1);
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : 0;
}

/* Moves to the root cgroup, which has no limits. */
static long leave_group(const struct breakout_vector *vector)
{
    CLEANUP_FD int fd = open(vector->path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : write(fd, "0", 1);
}

/* Opens a file for reading, then again through /proc/self/fd for writing. */
static long open_again(const struct breakout_vector *vector)
{
    char path[64];
    CLEANUP_FD int first = open(vector->path, O_RDONLY | O_CLOEXEC);
    if (first < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", first);
    CLEANUP_FD int second = open(path, O_RDWR | O_CLOEXEC);
    return second < 0 ? -1 : 0;
}

/* A second name for a file of root, in a folder of ours. */
static long link_to(const struct breakout_vector *vector)
{
    char path[64];
    CLEANUP_FD int fd = open(vector->path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    long result =
        fd < 0 ? -1
               : linkat(AT_FDCWD, path, AT_FDCWD, "/run/codev/breakout-link", AT_SYMLINK_FOLLOW);
    if (result == 0)
        unlink("/run/codev/breakout-link");
    return result;
}

#define READ(file, why)                                                                            \
    {                                                                                              \
        .name = "read " file, .attempt = breakout_read, .path = (file), .cannot = (why)            \
    }
#define OPEN(file, why)                                                                            \
    {                                                                                              \
        .name = "open " file, .attempt = breakout_open_read, .path = (file), .cannot = (why)       \
    }
#define WRITE(file, why)                                                                           \
    {                                                                                              \
        .name = "write " file, .attempt = breakout_open_write, .path = (file), .cannot = (why)     \
    }
#define NOT_HERE "this kernel has none"

static const struct breakout_vector kernel_files[] = {
    OPEN("/dev/mem", NOT_HERE),
    OPEN("/dev/port", NOT_HERE),
    OPEN("/dev/kmsg", NULL),
    OPEN("/dev/console", NULL),
    OPEN("/dev/vda", NULL),
    OPEN("/dev/vsock", NULL),
    OPEN("/dev/fuse", NULL),
    OPEN("/dev/hwrng", NULL),
    OPEN("/dev/net/tun", NOT_HERE),
    OPEN("/dev/cpu/0/msr", NOT_HERE),
    OPEN("/dev/kvm", NOT_HERE),
    OPEN("/proc/kmsg", NULL),
    OPEN("/proc/kcore", NOT_HERE),
    {.name = "addresses in /proc/kallsyms", .attempt = kernel_addresses, .path = "/proc/kallsyms"},
    READ("/proc/vmallocinfo", NULL),
    READ("/proc/pagetypeinfo", NULL),
    OPEN("/proc/kpagecount", NULL),
    OPEN("/proc/kpageflags", NULL),
    READ("/sys/firmware/acpi/tables/DSDT", NULL),
    WRITE("/proc/sysrq-trigger", NOT_HERE),
    WRITE("/proc/sys/kernel/core_pattern", NULL),
    WRITE("/proc/sys/kernel/modprobe", "this kernel loads no modules"),
    WRITE("/proc/sys/kernel/hotplug", NOT_HERE),
    WRITE("/proc/sys/kernel/hostname", NULL),
    WRITE("/proc/sys/kernel/randomize_va_space", NULL),
    WRITE("/proc/sys/kernel/kptr_restrict", NULL),
    WRITE("/proc/sys/kernel/panic", NULL),
    WRITE("/proc/sys/vm/overcommit_memory", NULL),
    WRITE("/proc/sys/vm/drop_caches", NULL),
    WRITE("/proc/sys/fs/protected_symlinks", NULL),
    WRITE("/proc/sys/net/ipv4/ip_forward", NULL),
    WRITE("/proc/sys/fs/binfmt_misc/register", NOT_HERE),
    WRITE("/sys/kernel/uevent_helper", NOT_HERE),
    WRITE("/sys/kernel/rcu_expedited", NULL),
    WRITE("/sys/kernel/mm/transparent_hugepage/enabled", NULL),
    WRITE("/sys/bus/pci/rescan", NULL),
    WRITE("/sys/bus/pci/drivers_probe", NULL),
    WRITE("/sys/block/vda/uevent", NULL),
    WRITE("/sys/power/state", NOT_HERE),
    READ("/sys/kernel/debug/sched/debug", NOT_HERE),
    WRITE("/sys/fs/cgroup/cgroup.procs", NULL),
    WRITE("/sys/fs/cgroup/cgroup.subtree_control", NULL),
    {.name = "into the root cgroup", .attempt = leave_group, .path = "/sys/fs/cgroup/cgroup.procs"},
    {.name = "a cgroup of one's own", .attempt = make_folder, .path = "/sys/fs/cgroup/breakout"},
    {.name = "memory.max of one's cgroup", .attempt = write_own_group, .path = "/memory.max"},
    {.name = "pids.max of one's cgroup", .attempt = write_own_group, .path = "/pids.max"},
    {.name = "cgroup.procs of one's cgroup", .attempt = write_own_group, .path = "/cgroup.procs"},
    READ("/etc/shadow", NULL),
    WRITE("/etc/passwd", NULL),
    WRITE("/run/codev/sandbox.json", NULL),
    WRITE("/sbin/codev-init", NULL),
    WRITE("/usr/libexec/codev/codev-agent", NULL),
    {.name = "create /etc/ld.so.preload", .attempt = create_file, .path = "/etc/ld.so.preload"},
    {.name = "create /dev/breakout", .attempt = create_file, .path = "/dev/breakout"},
    {.name = "move /etc/passwd away", .attempt = remove_file, .path = "/etc/passwd"},
    {.name = "a read-only descriptor reopened by /proc/self/fd",
     .attempt = open_again,
     .path = "/run/codev/sandbox.json"},
    {.name = "a second link to a file of root",
     .attempt = link_to,
     .path = "/run/codev/sandbox.json"},
};
const struct breakout_group breakout_kernel_files = {"files of the kernel and the system",
                                                     kernel_files, ARRAY_LENGTH(kernel_files), 0};
