/* Confines the broker's process on Linux: Landlock for files, seccomp for system calls.
 *
 * Landlock: a rule covers a folder and everything below it, including files that are created later.
 * A file that may be replaced (the token, a CA file) is therefore allowed through its folder.
 * Descriptors that are already open are not affected, nor are memory files that are reopened
 * through /proc/self/fd (the collected CAs). All access rights that both this file and the running
 * kernel know are handled (include/uapi/linux/landlock.h, security/landlock/).
 *
 * seccomp: the filter refuses other ABIs, most kinds of socket, new processes, and the calls of a
 * list; everything else is allowed.
 */
#include "host-broker/confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/os/seccomp_filter_linux.h"

/* Debian 12's headers have the second version of the interface; these came later, in version: */
#define ACCESS_TRUNCATE (1ULL << 14)           /* 3: LANDLOCK_ACCESS_FS_TRUNCATE */
#define ACCESS_IOCTL_DEV (1ULL << 15)          /* 5: LANDLOCK_ACCESS_FS_IOCTL_DEV */
#define NET_BIND_TCP (1ULL << 0)               /* 4: LANDLOCK_ACCESS_NET_BIND_TCP */
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* 6: LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET */

struct ruleset { /* struct landlock_ruleset_attr as of version 6 */
    uint64_t files, net, scoped;
};

#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LOG                                                                                        \
    (READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |                          \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | ACCESS_TRUNCATE)
#define TICKETS (READ | LANDLOCK_ACCESS_FS_WRITE_FILE) /* a new ticket is added to its file */
#define FOR_FILES                                                                                  \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |   \
     ACCESS_TRUNCATE | ACCESS_IOCTL_DEV) /* the rights that apply to a file */

/* Libraries, their settings, name resolution and CAs. */
static const char *const read_always[] = {
    "/etc",
    "/usr",
    "/lib",
    "/lib64",
    "/lib32",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/connman",
    "/run/netconfig", /* up to here: targets of the link /etc/resolv.conf */
    "/var/lib/sss",
    "/run/nscd",
    "/var/run/nscd",
    "/var/lib/extrausers", /* up to here: services for names of users and hosts */
    "/var/lib/ca-certificates",
    "/proc/sys",
    "/dev/urandom",
    "/dev/random",
    "/dev/null",
};

struct builder {
    int ruleset;
    uint64_t handled;
    int error; /* the first */
};

static void allow(struct builder *builder, const char *path, uint64_t access)
{
    CLEANUP_FD int fd = open(path, O_PATH | O_CLOEXEC);
    struct stat info;
    if (builder->error != 0 || fd < 0 || fstat(fd, &info) < 0)
        return; /* a path that does not exist needs no rule */
    access &= builder->handled;
    if (!S_ISDIR(info.st_mode))
        access &= FOR_FILES;
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
    if (syscall(SYS_landlock_add_rule, builder->ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        builder->error = -errno;
}

static void allow_folder_of(struct builder *builder, const char *path, uint64_t access)
{
    char copy[PATH_MAX];
    if (!path || snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
        return;
    allow(builder, dirname(copy), access);
}

/* The folder of a path and, if it is a link, the folder of its present target. */
static void allow_file(struct builder *builder, const char *path)
{
    char target[PATH_MAX];
    if (!path || *path == '\0')
        return;
    allow_folder_of(builder, path, READ);
    if (realpath(path, target))
        allow_folder_of(builder, target, READ);
}

static void allow_trust(struct builder *builder, const struct confine_needs *needs)
{
    for (size_t i = 0; i < needs->ca_file_count; i++)
        allow_file(builder, needs->ca_files[i]);
    allow_file(builder, getenv("SSL_CERT_FILE"));
    allow_file(builder, getenv("NODE_EXTRA_CA_CERTS"));
    const char *folders = getenv("SSL_CERT_DIR");
    char folder[PATH_MAX];
    while (folders && io_next_path(&folders, folder))
        allow(builder, folder, READ);
}

/* KRB5CCNAME is TYPE:RESIDUAL or a path; types without a file need nothing here (krb5
 * documentation, "ccache types"). */
static void allow_tickets(struct builder *builder)
{
    const char *name = getenv("KRB5CCNAME");
    if (!name)
        allow(builder, "/tmp", TICKETS); /* FILE:/tmp/krb5cc_UID */
    else if (strncmp(name, "DIR:", 4) == 0)
        allow(builder, name + 4 + (name[4] == ':'), TICKETS);
    else if (strncmp(name, "FILE:", 5) == 0)
        allow_folder_of(builder, name + 5, TICKETS);
    else if (name[0] == '/')
        allow_folder_of(builder, name, TICKETS);
    allow_file(builder, getenv("KRB5_CONFIG"));
}

static void allow_needs(struct builder *builder, const struct confine_needs *needs)
{
    for (size_t i = 0; i < ARRAY_LENGTH(read_always); i++)
        allow(builder, read_always[i], READ);
    allow_file(builder, "/etc/resolv.conf"); /* in WSL a link into /mnt/wsl */
    allow_file(builder, needs->token_file);
    allow_trust(builder, needs);
    allow_folder_of(builder, needs->log, LOG);
    for (size_t i = 0; i < needs->socket_count; i++)
        allow_folder_of(builder, needs->sockets[i], LANDLOCK_ACCESS_FS_REMOVE_FILE);
    if (needs->kerberos)
        allow_tickets(builder);
}

/* All rights of this version of the interface. */
static struct ruleset handled_by(int version)
{
    unsigned file_rights = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
    return (struct ruleset){
        .files = (1ULL << file_rights) - 1,
        .net = version >= 4 ? NET_BIND_TCP : 0,
        .scoped = version >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET : 0,
    };
}

static size_t size_known_to(int version)
{
    return version >= 6   ? sizeof(struct ruleset)
           : version >= 4 ? offsetof(struct ruleset, scoped)
                          : offsetof(struct ruleset, net);
}

int confine_files(const struct confine_needs *needs, struct failure *why)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return 0;
    struct ruleset handled = handled_by((int)version);
    CLEANUP_FD int fd =
        (int)syscall(SYS_landlock_create_ruleset, &handled, size_known_to((int)version), 0);
    if (fd < 0)
        return failure_errno(why, errno, "make Landlock rules");
    struct builder builder = {.ruleset = fd, .handled = handled.files};
    allow_needs(&builder, needs);
    if (builder.error < 0)
        return failure_errno(why, -builder.error, "make Landlock rules");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return failure_errno(why, errno, "PR_SET_NO_NEW_PRIVS");
    if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
        return failure_errno(why, errno, "put Landlock rules into force");
    return 1;
}

#define SOCKET_TYPE_MASK 0xf /* include/linux/net.h: SOCK_TYPE_MASK; flags are above it */

static const struct seccomp_rule rules[] = {
    /* upstreams (TCP), names (UDP), resolver services and libcurl's wake-up (Unix), and the routing
     * netlink that getaddrinfo(3) asks for addresses */
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_UNIX)),
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_NETLINK), ARGUMENT_IS(2, NETLINK_ROUTE)),
    RULE(socket, REFUSE(EAFNOSUPPORT), ARGUMENT_IS_NOT(0, AF_INET), ARGUMENT_IS_NOT(0, AF_INET6)),
    RULE(socket, ALLOW, ARGUMENT_MASKED(1, SOCKET_TYPE_MASK, SOCK_STREAM)),
    RULE(socket, ALLOW, ARGUMENT_MASKED(1, SOCKET_TYPE_MASK, SOCK_DGRAM)),
    RULE(socket, REFUSE(EPERM)),
    /* threads, but no processes */
    RULE(clone, ALLOW, ARGUMENT_HAS_ANY(0, CLONE_THREAD)),
    RULE(clone, REFUSE(EPERM)),
    /* other programs and processes; clone3 hides its flags, and libraries fall back to clone */
    RULE(execve, REFUSE(EPERM)),
    RULE(execveat, REFUSE(EPERM)),
#ifdef SYS_fork
    RULE(fork, REFUSE(EPERM)),
    RULE(vfork, REFUSE(EPERM)),
#endif
    RULE(clone3, REFUSE(ENOSYS)),
    /* access to other processes and their descriptors */
    RULE(ptrace, REFUSE(EPERM)),
    RULE(process_vm_readv, REFUSE(EPERM)),
    RULE(process_vm_writev, REFUSE(EPERM)),
    RULE(pidfd_getfd, REFUSE(EPERM)),
    RULE(kcmp, REFUSE(EPERM)),
    /* every listener is open already */
    RULE(listen, REFUSE(EPERM)),
    /* makes sockets and opens files that no filter sees */
    RULE(io_uring_setup, REFUSE(ENOSYS)),
    RULE(io_uring_enter, REFUSE(ENOSYS)),
    RULE(io_uring_register, REFUSE(ENOSYS)),
    RULE(open_by_handle_at, REFUSE(EPERM)),
    /* large parts of the kernel that the broker never needs */
    RULE(bpf, REFUSE(EPERM)),
    RULE(perf_event_open, REFUSE(EPERM)),
    RULE(userfaultfd, REFUSE(EPERM)),
    RULE(kexec_load, REFUSE(EPERM)),
    RULE(kexec_file_load, REFUSE(EPERM)),
    RULE(init_module, REFUSE(EPERM)),
    RULE(finit_module, REFUSE(EPERM)),
    RULE(delete_module, REFUSE(EPERM)),
    RULE(syslog, REFUSE(EPERM)),
    RULE(acct, REFUSE(EPERM)),
    RULE(quotactl, REFUSE(EPERM)),
    RULE(swapon, REFUSE(EPERM)),
    RULE(swapoff, REFUSE(EPERM)),
    RULE(reboot, REFUSE(EPERM)),
    RULE(personality, REFUSE(EPERM)),
#ifdef __x86_64__
    RULE(iopl, REFUSE(EPERM)),
    RULE(ioperm, REFUSE(EPERM)),
    RULE(modify_ldt, REFUSE(EPERM)),
#endif
    /* namespaces, mounts, clocks, host names, other users' ids */
    RULE(unshare, REFUSE(EPERM)),
    RULE(setns, REFUSE(EPERM)),
    RULE(mount, REFUSE(EPERM)),
    RULE(umount2, REFUSE(EPERM)),
    RULE(pivot_root, REFUSE(EPERM)),
    RULE(chroot, REFUSE(EPERM)),
    RULE(move_mount, REFUSE(EPERM)),
    RULE(open_tree, REFUSE(EPERM)),
    RULE(fsopen, REFUSE(EPERM)),
    RULE(fsmount, REFUSE(EPERM)),
    RULE(fspick, REFUSE(EPERM)),
    RULE(mount_setattr, REFUSE(EPERM)),
    RULE(settimeofday, REFUSE(EPERM)),
    RULE(clock_settime, REFUSE(EPERM)),
    RULE(clock_adjtime, REFUSE(EPERM)),
    RULE(adjtimex, REFUSE(EPERM)),
    RULE(sethostname, REFUSE(EPERM)),
    RULE(setdomainname, REFUSE(EPERM)),
    RULE(setuid, REFUSE(EPERM)),
    RULE(setgid, REFUSE(EPERM)),
    RULE(setreuid, REFUSE(EPERM)),
    RULE(setregid, REFUSE(EPERM)),
    RULE(setresuid, REFUSE(EPERM)),
    RULE(setresgid, REFUSE(EPERM)),
    RULE(setgroups, REFUSE(EPERM)),
    RULE(mknodat, REFUSE(EPERM)),
};

int confine_calls(struct failure *why)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return failure_errno(why, errno, "PR_SET_NO_NEW_PRIVS");
    int result = seccomp_filter_load_table(rules, ARRAY_LENGTH(rules), ALLOW, REFUSE(ENOSYS));
    if (result == 0)
        return 1;
    if (result == -EINVAL) /* a kernel without CONFIG_SECCOMP_FILTER */
        return 0;
    return failure_errno(why, -result, "load the filter of system calls");
}

int confine_process(const struct confine_needs *needs, struct failure *why)
{
#ifdef __SANITIZE_ADDRESS__
    (void)needs, (void)why;
    return 0;
#else
    int result = confine_files(needs, why);
    if (result >= 0)
        result = confine_calls(why);
    return result < 0 ? result : 0;
#endif
}
