/* The deny list that the server runs under, as BPF for seccomp(2).
 *
 * It refuses with errors and never kills: runtimes probe for system calls and go on without those that
 * are missing, but die when the probe kills them. The filter is put together from parts:
 *
 *     1. other system call ABIs (ia32, x32): their numbers mean something else, so nothing of them runs
 *     2. socket and socketpair, by family, type and protocol
 *     3. clone and unshare, by their flags                  (not with user_namespaces)
 *     4. tables of system calls that are refused whole, searched by halves; everything else is allowed
 *
 * Parts 2 and 3 are blocks that begin with "is it this call? else skip the block" and in which every other
 * path ends in a verdict, so that the number in the accumulator is still there for the next part. An ordinary
 * call runs none of this: the kernel finds out at load which calls are allowed whatever their arguments
 * (kernel/seccomp.c, the action cache). That costs one run for each call there is, which is why part 4 is no list.
 *
 * Arguments: the kernel takes domain, type, protocol and the flags of clone and unshare as 32 bits of their
 * registers (flags above bit 31 exist for clone3 only), so only the low words are looked at.
 */
#include "init/walls/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
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
#error "the deny list has not been thought through for this architecture"
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the low word of an argument is taken to come first"
#endif

#define FILTER_MAX 256
#define REFUSED_MAX 64      /* calls of part 4 together */
#define LEAF_CALLS 3        /* so few are compared one by one */
#define X32_BIT 0x40000000u /* asm/unistd.h: __X32_SYSCALL_BIT */
#define SOCKET_TYPE_MASK                                                                           \
    0xf /* include/linux/net.h: SOCK_TYPE_MASK; above it SOCK_NONBLOCK, SOCK_CLOEXEC */
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

#define NAMESPACE_FLAGS                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)
#define UNSHARE_FLAGS                                                                              \
    (NAMESPACE_FLAGS | CLONE_NEWTIME) /* in clone this bit is part of the signal */

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define LOAD_NUMBER LOAD(offsetof(struct seccomp_data, nr))
#define LOAD_ARGUMENT(n) LOAD(offsetof(struct seccomp_data, args) + 8 * (n))
#define IF_EQUAL(value, then, otherwise)                                                           \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (then), (otherwise))
#define IF_ANY_BIT(bits, then, otherwise)                                                          \
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (then), (otherwise))
#define IF_AT_LEAST(value, then, otherwise)                                                        \
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (value), (then), (otherwise))
#define MASK(bits) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (bits))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

/* 1. Everything below compares numbers of this one ABI. (On x86 a number above the x32 bit is also what a
 * tracer writes to skip a call: -1, for which ENOSYS is the kernel's own answer.) */
static const struct sock_filter abi_part[] = {
    LOAD(offsetof(struct seccomp_data, arch)),
    IF_EQUAL(FILTER_ARCH, 1, 0),
    REFUSE(ENOSYS),
    LOAD_NUMBER,
#ifdef __x86_64__
    IF_AT_LEAST(X32_BIT, 0, 1),
    REFUSE(ENOSYS),
#endif
};

/* 2. AF_VSOCK reaches the host past every firewall, AF_PACKET and raw sockets forge packets, the rest of the
 * families is kernel code that nothing here needs. NETLINK_ROUTE is what os.networkInterfaces() and
 * getaddrinfo() ask. Raw sockets of AF_NETLINK are the ordinary ones. */
static const struct sock_filter socket_part[] = {
    IF_EQUAL(SYS_socket, 0, 17),
    LOAD_ARGUMENT(0),
    IF_EQUAL(AF_UNIX, 13, 0),
    IF_EQUAL(AF_INET, 4, 0),
    IF_EQUAL(AF_INET6, 3, 0),
    IF_EQUAL(AF_NETLINK, 0, 11),
    LOAD_ARGUMENT(2),
    IF_EQUAL(NETLINK_ROUTE, 8, 9),
    /* AF_INET, AF_INET6 */
    LOAD_ARGUMENT(1),
    MASK(SOCKET_TYPE_MASK),
    IF_EQUAL(SOCK_RAW, 3, 0),
    IF_EQUAL(SOCK_PACKET, 2, 0),
    LOAD_ARGUMENT(2),
    IF_EQUAL(IPPROTO_MPTCP, 1, 2),
    REFUSE(EPERM),
    REFUSE(EPROTONOSUPPORT),
    ALLOW,
    REFUSE(EAFNOSUPPORT),
};

/* The families that can make pairs at all are few; only AF_UNIX has a use. */
static const struct sock_filter socketpair_part[] = {
    IF_EQUAL(SYS_socketpair, 0, 4), LOAD_ARGUMENT(0), IF_EQUAL(AF_UNIX, 0, 1), ALLOW,
    REFUSE(EAFNOSUPPORT),
};

/* 3. A new user namespace gives every capability inside it, and with them most of the kernel's code that was
 * only ever meant for root. The other namespaces need one, and are refused the same way. */
static const struct sock_filter clone_part[] = {
    IF_EQUAL(SYS_clone, 0, 4),
    LOAD_ARGUMENT(0),
    IF_ANY_BIT(NAMESPACE_FLAGS, 0, 1),
    REFUSE(EPERM),
    ALLOW,
};
static const struct sock_filter unshare_part[] = {
    IF_EQUAL(SYS_unshare, 0, 4),
    LOAD_ARGUMENT(0),
    IF_ANY_BIT(UNSHARE_FLAGS, 0, 1),
    REFUSE(EPERM),
    ALLOW,
};

struct refused_call {
    unsigned number;
    int error;
};

/* 4. Refused for everyone. */
static const struct refused_call refused_calls[] = {
    /* makes sockets and opens files that no filter sees */
    {SYS_io_uring_setup, ENOSYS},
    {SYS_io_uring_enter, ENOSYS},
    {SYS_io_uring_register, ENOSYS},
    /* its flags lie in memory, where a filter cannot read them; libraries fall back to clone */
    {SYS_clone3, ENOSYS},
    /* programs that run in the kernel; a watch on everything the machine does */
    {SYS_bpf, EPERM},
    {SYS_perf_event_open, EPERM},
    /* another kernel, more kernel, no kernel */
    {SYS_kexec_load, EPERM},
#ifdef SYS_kexec_file_load
    {SYS_kexec_file_load, EPERM},
#endif
    {SYS_init_module, EPERM},
    {SYS_finit_module, EPERM},
    {SYS_delete_module, EPERM},
    {SYS_reboot, EPERM},
    {SYS_swapon, EPERM},
    {SYS_swapoff, EPERM},
#ifdef __x86_64__
    /* the processor's ports */
    {SYS_iopl, EPERM},
    {SYS_ioperm, EPERM},
    /* segments of its own: a door to the kernel where it has the call, as WSL's has */
    {SYS_modify_ldt, ENOSYS},
#endif
    /* the clock is the host's to set */
    {SYS_settimeofday, EPERM},
    {SYS_clock_settime, EPERM},
    {SYS_adjtimex, EPERM},
    {SYS_clock_adjtime, EPERM},
    /* keyrings know no namespace, and have been a door to the kernel again and again */
    {SYS_keyctl, EPERM},
    {SYS_add_key, EPERM},
    {SYS_request_key, EPERM},
    /* stops the kernel in the middle of a copy: what makes races in it winnable */
    {SYS_userfaultfd, EPERM},
    /* opens files past the directories that lead to them */
    {SYS_open_by_handle_at, EPERM},
};

/* Refused unless `user_namespaces`: what changes which files a path means. */
static const struct refused_call refused_mount_calls[] = {
    {SYS_mount, EPERM},         {SYS_umount2, EPERM},   {SYS_pivot_root, EPERM},
    {SYS_chroot, EPERM},        {SYS_setns, EPERM},     {SYS_fsopen, EPERM},
    {SYS_fsconfig, EPERM},      {SYS_fsmount, EPERM},   {SYS_fspick, EPERM},
    {SYS_move_mount, EPERM},    {SYS_open_tree, EPERM}, {SYS_open_tree_attr, EPERM},
    {SYS_mount_setattr, EPERM},
};

_Static_assert(ARRAY_LENGTH(refused_calls) + ARRAY_LENGTH(refused_mount_calls) <= REFUSED_MAX,
               "REFUSED_MAX");

/* Appends with a sticky overflow: checked once, at the end. */
struct filter_builder {
    struct sock_filter *code;
    size_t length;
    bool overflow;
};

static void filter_append(struct filter_builder *filter, const struct sock_filter *part,
                          size_t length)
{
    if (filter->overflow || length > FILTER_MAX - filter->length) {
        filter->overflow = true;
        return;
    }
    memcpy(filter->code + filter->length, part, length * sizeof(*part));
    filter->length += length;
}

/* Takes the calls of a table into the list, by number. */
static size_t collect(struct refused_call *list, size_t count, const struct refused_call *calls,
                      size_t more)
{
    for (size_t i = 0; i < more && count < REFUSED_MAX; i++) {
        size_t place = count++;
        for (; place > 0 && list[place - 1].number > calls[i].number; place--)
            list[place] = list[place - 1];
        list[place] = calls[i];
    }
    return count;
}

/* A binary search for the number in the accumulator: a jump over the lower half, down to a few comparisons. */
static void filter_search(struct filter_builder *filter, const struct refused_call *calls,
                          size_t count)
{
    static const struct sock_filter allow = ALLOW;

    if (count <= LEAF_CALLS) {
        for (size_t i = 0; i < count; i++) {
            const struct sock_filter pair[] = {IF_EQUAL(calls[i].number, 0, 1),
                                               REFUSE(calls[i].error)};
            filter_append(filter, pair, ARRAY_LENGTH(pair));
        }
        filter_append(filter, &allow, 1);
        return;
    }
    size_t half = count / 2, place = filter->length;
    filter_append(filter, &allow, 1); /* the jump's place */
    filter_search(filter, calls, half);
    size_t distance = filter->length - place - 1;
    if (filter->overflow || distance > UINT8_MAX) {
        filter->overflow = true;
        return;
    }
    filter->code[place] =
        (struct sock_filter)IF_AT_LEAST(calls[half].number, (unsigned char)distance, 0);
    filter_search(filter, calls + half, count - half);
}

int seccomp_server_filter(struct sock_fprog *out, bool user_namespaces)
{
    static struct sock_filter code[FILTER_MAX];
    struct refused_call list[REFUSED_MAX];
    struct filter_builder filter = {.code = code};
    size_t count = collect(list, 0, refused_calls, ARRAY_LENGTH(refused_calls));

    filter_append(&filter, abi_part, ARRAY_LENGTH(abi_part));
    filter_append(&filter, socket_part, ARRAY_LENGTH(socket_part));
    filter_append(&filter, socketpair_part, ARRAY_LENGTH(socketpair_part));
    if (!user_namespaces) {
        filter_append(&filter, clone_part, ARRAY_LENGTH(clone_part));
        filter_append(&filter, unshare_part, ARRAY_LENGTH(unshare_part));
        count = collect(list, count, refused_mount_calls, ARRAY_LENGTH(refused_mount_calls));
    }
    filter_search(&filter, list, count);
    if (filter.overflow)
        return -E2BIG;
    *out = (struct sock_fprog){.len = (unsigned short)filter.length, .filter = code};
    return 0;
}

int seccomp_load_server_filter(bool user_namespaces)
{
    struct sock_fprog program;
    int result = seccomp_server_filter(&program, user_namespaces);

    if (result == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        result = -errno;
    return result;
}
