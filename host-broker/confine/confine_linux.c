/* The system calls that the broker refuses itself, as BPF for seccomp(2): see confine.h.
 *
 * The filter is a row of small parts: other ABIs, socket, clone, then the calls that are refused whole.
 * Everything else is allowed, and the kernel finds out at load that those calls need no run of the filter
 * (kernel/seccomp.c, the action cache). Arguments are looked at by their low words only: the kernel takes
 * no more of these.
 */
#include "host-broker/confine/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"

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
