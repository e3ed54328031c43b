/* Confines the broker's process on Linux: Landlock for files, seccomp for system calls.
 *
 * Landlock: a rule covers a folder and everything below it, including files that are created later. A
 * file that may be replaced (the token, a CA file) is therefore allowed through its folder. Descriptors
 * that are already open are not affected, nor are memory files that are reopened through /proc/self/fd
 * (the collected CAs). All access rights that both this file and the running kernel know are handled
 * (include/uapi/linux/landlock.h, security/landlock/).
 *
 * seccomp: the filter refuses other ABIs, most kinds of socket, new processes, and the calls of a list;
 * everything else is allowed. The kernel finds out at load time which calls are always allowed and skips
 * the filter for them (kernel/seccomp.c, the action cache). Arguments are compared by their low 32 bits
 * because the kernel ignores the high ones of these calls.
 */
#include "host-broker/confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
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

/* Debian 12's headers end with the second version of the interface. */
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
     ACCESS_TRUNCATE | ACCESS_IOCTL_DEV) /* the rights that a file can be given */

/* Folders whose contents any process may need: libraries and their settings, names, CAs. */
static const char *const read_always[] = {
    "/etc",
    "/usr",
    "/lib",
    "/lib64",
    "/lib32",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager", /* /etc/resolv.conf is a link */
    "/run/connman",
    "/run/netconfig",
    "/var/lib/sss",
    "/run/nscd",
    "/var/run/nscd",
    "/var/lib/extrausers", /* services of names */
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
        return; /* what is not there need not be allowed */
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
    if (path == NULL || snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
        return;
    allow(builder, dirname(copy), access);
}

/* The folder of a path, and that of the file which it leads to now. */
static void allow_file(struct builder *builder, const char *path)
{
    char target[PATH_MAX];
    if (path == NULL || *path == '\0')
        return;
    allow_folder_of(builder, path, READ);
    if (realpath(path, target) != NULL)
        allow_folder_of(builder, target, READ);
}

static void allow_trust(struct builder *builder, const struct confine_needs *needs)
{
    for (size_t i = 0; i < needs->ca_file_count; i++)
        allow_file(builder, needs->ca_files[i]);
    allow_file(builder, getenv("SSL_CERT_FILE"));
    allow_file(builder, getenv("NODE_EXTRA_CA_CERTS"));
    const char *folder = getenv("SSL_CERT_DIR");
    if (folder != NULL)
        allow(builder, folder, READ);
}

/* KRB5CCNAME is TYPE:RESIDUAL or a path; types without a file need nothing here (krb5 documentation,
 * "ccache types"). */
static void allow_tickets(struct builder *builder)
{
    const char *name = getenv("KRB5CCNAME");
    if (name == NULL)
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
    allow_file(builder, "/etc/resolv.conf"); /* where its link leads: WSL has it in /mnt/wsl */
    allow_file(builder, needs->token_file);
    allow_trust(builder, needs);
    allow_folder_of(builder, needs->log, LOG);
    for (size_t i = 0; i < needs->socket_count; i++)
        allow_folder_of(builder, needs->sockets[i], LANDLOCK_ACCESS_FS_REMOVE_FILE);
    if (needs->kerberos)
        allow_tickets(builder);
}

/* All rights that this version of the interface has. */
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

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#error "the broker's filter has not been thought through for this architecture"
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the low word of an argument is taken to come first"
#endif

#define FILTER_MAX 256
#define X32_BIT 0x40000000u   /* asm/unistd.h: __X32_SYSCALL_BIT */
#define SOCKET_TYPE_MASK 0xfu /* include/linux/net.h: SOCK_TYPE_MASK */

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_ARGUMENT(n)                                                                           \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

/* Numbers of another ABI mean something else: nothing of them runs. */
static const struct sock_filter abi_part[] = {
    LOAD(arch),
    IF_EQUAL(FILTER_ARCH, 1, 0),
    REFUSE(ENOSYS),
    LOAD(nr),
#ifdef __x86_64__
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
    REFUSE(ENOSYS),
#endif
};

/* Upstreams (TCP), names (UDP), resolver services and libcurl's wake-up (Unix), and the routing netlink
 * that getaddrinfo(3) asks for addresses. */
static const struct sock_filter socket_part[] = {
    IF_EQUAL(SYS_socket, 0, 14),
    LOAD_ARGUMENT(0),
    IF_EQUAL(AF_UNIX, 10, 0),
    IF_EQUAL(AF_INET, 5, 0),
    IF_EQUAL(AF_INET6, 4, 0),
    IF_EQUAL(AF_NETLINK, 0, 2),
    LOAD_ARGUMENT(2),
    IF_EQUAL(NETLINK_ROUTE, 5, 0),
    REFUSE(EAFNOSUPPORT),
    LOAD_ARGUMENT(1), /* AF_INET and AF_INET6: streams and datagrams */
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCKET_TYPE_MASK),
    IF_EQUAL(SOCK_STREAM, 1, 0),
    IF_EQUAL(SOCK_DGRAM, 0, 1),
    ALLOW,
    REFUSE(EPERM),
};

/* Threads, and nothing but threads. */
static const struct sock_filter clone_part[] = {
    IF_EQUAL(SYS_clone, 0, 4),
    LOAD_ARGUMENT(0),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
    ALLOW,
    REFUSE(EPERM),
};

struct refused_call {
    int number, error;
};

#define NO(name)                                                                                   \
    {                                                                                              \
        SYS_##name, EPERM                                                                          \
    }

static const struct refused_call refused_calls[] = {
    /* other programs and processes; clone3 hides its flags, and libraries fall back to clone */
    NO(execve),
    NO(execveat),
#ifdef SYS_fork
    NO(fork),
    NO(vfork),
#endif
    {SYS_clone3, ENOSYS},
    /* a look into other processes, or their descriptors */
    NO(ptrace),
    NO(process_vm_readv),
    NO(process_vm_writev),
    NO(pidfd_getfd),
    NO(kcmp),
    /* every listener is there already */
    NO(listen),
    /* sockets and files behind the filter's back */
    {SYS_io_uring_setup, ENOSYS},
    {SYS_io_uring_enter, ENOSYS},
    {SYS_io_uring_register, ENOSYS},
    NO(open_by_handle_at),
    /* large parts of the kernel that have nothing to do with this */
    NO(bpf),
    NO(perf_event_open),
    NO(userfaultfd),
    NO(kexec_load),
    NO(kexec_file_load),
    NO(init_module),
    NO(finit_module),
    NO(delete_module),
    NO(syslog),
    NO(acct),
    NO(quotactl),
    NO(swapon),
    NO(swapoff),
    NO(reboot),
    NO(personality),
#ifdef __x86_64__
    NO(iopl),
    NO(ioperm),
    NO(modify_ldt),
#endif
    /* namespaces, mounts, clocks, host names, other users' ids */
    NO(unshare),
    NO(setns),
    NO(mount),
    NO(umount2),
    NO(pivot_root),
    NO(chroot),
    NO(move_mount),
    NO(open_tree),
    NO(fsopen),
    NO(fsmount),
    NO(fspick),
    NO(mount_setattr),
    NO(settimeofday),
    NO(clock_settime),
    NO(clock_adjtime),
    NO(adjtimex),
    NO(sethostname),
    NO(setdomainname),
    NO(setuid),
    NO(setgid),
    NO(setreuid),
    NO(setregid),
    NO(setresuid),
    NO(setresgid),
    NO(setgroups),
    NO(mknodat),
};

struct filter_builder {
    struct sock_filter code[FILTER_MAX];
    size_t length;
};

static void append(struct filter_builder *filter, const struct sock_filter *part, size_t count)
{
    if (filter->length + count <= FILTER_MAX)
        memcpy(filter->code + filter->length, part, count * sizeof(*part));
    filter->length += count; /* beyond FILTER_MAX: refused below */
}

static int build(struct filter_builder *filter)
{
    static const struct sock_filter allow = ALLOW;
    append(filter, abi_part, ARRAY_LENGTH(abi_part));
    append(filter, socket_part, ARRAY_LENGTH(socket_part));
    append(filter, clone_part, ARRAY_LENGTH(clone_part));
    for (size_t i = 0; i < ARRAY_LENGTH(refused_calls); i++) {
        const struct sock_filter pair[] = {IF_EQUAL(refused_calls[i].number, 0, 1),
                                           REFUSE(refused_calls[i].error)};
        append(filter, pair, ARRAY_LENGTH(pair));
    }
    append(filter, &allow, 1);
    return filter->length <= FILTER_MAX ? 0 : -E2BIG;
}

int confine_calls(struct failure *why)
{
    struct filter_builder filter = {.length = 0};
    int result = build(&filter);
    if (result < 0)
        return failure_errno(why, -result, "build the filter of system calls");
    struct sock_fprog program = {.len = (unsigned short)filter.length, .filter = filter.code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return failure_errno(why, errno, "PR_SET_NO_NEW_PRIVS");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        return 1;
    if (errno == EINVAL) /* a kernel without CONFIG_SECCOMP_FILTER */
        return 0;
    return failure_errno(why, errno, "load the filter of system calls");
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
