/* The deny list that the server runs under: what is not refused here is allowed.
 *
 * Calls are refused with errors and never with a signal: runtimes probe for system calls and go on
 * without those that are missing, but would die of a signal. Calls of another ABI get ENOSYS, all
 * of them.
 */
#include "init/walls/seccomp.h"

#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/os/cleanup.h"
#include "common/os/seccomp_filter_linux.h"

#define SOCKET_TYPE_MASK 0xf /* include/linux/net.h: SOCK_TYPE_MASK; flags are above it */
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

#define NAMESPACE_FLAGS                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

static const struct seccomp_rule always_refused[] = {
    /* AF_VSOCK reaches the host past every firewall, AF_PACKET and raw sockets forge packets; the
     * other families are kernel code that nothing in the sandbox needs. os.networkInterfaces() and
     * getaddrinfo() use NETLINK_ROUTE. */
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_UNIX)),
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_NETLINK), ARGUMENT_IS(2, NETLINK_ROUTE)),
    RULE(socket, REFUSE(EAFNOSUPPORT), ARGUMENT_IS_NOT(0, AF_INET), ARGUMENT_IS_NOT(0, AF_INET6)),
    RULE(socket, REFUSE(EPERM), ARGUMENT_MASKED(1, SOCKET_TYPE_MASK, SOCK_RAW)),
    RULE(socket, REFUSE(EPERM), ARGUMENT_MASKED(1, SOCKET_TYPE_MASK, SOCK_PACKET)),
    RULE(socket, REFUSE(EPROTONOSUPPORT), ARGUMENT_IS(2, IPPROTO_MPTCP)),
    /* few families can make pairs at all, and only AF_UNIX has a use */
    RULE(socketpair, REFUSE(EAFNOSUPPORT), ARGUMENT_IS_NOT(0, AF_UNIX)),
    /* makes sockets and opens files that no filter sees */
    RULE(io_uring_setup, REFUSE(ENOSYS)),
    RULE(io_uring_enter, REFUSE(ENOSYS)),
    RULE(io_uring_register, REFUSE(ENOSYS)),
    /* its flags are in memory, where a filter cannot read them; libraries fall back to clone */
    RULE(clone3, REFUSE(ENOSYS)),
    /* loads programs into the kernel; observes all that the machine does */
    RULE(bpf, REFUSE(EPERM)),
    RULE(perf_event_open, REFUSE(EPERM)),
    /* replaces, extends or stops the kernel */
    RULE(kexec_load, REFUSE(EPERM)),
#ifdef SYS_kexec_file_load
    RULE(kexec_file_load, REFUSE(EPERM)),
#endif
    RULE(init_module, REFUSE(EPERM)),
    RULE(finit_module, REFUSE(EPERM)),
    RULE(delete_module, REFUSE(EPERM)),
    RULE(reboot, REFUSE(EPERM)),
    RULE(swapon, REFUSE(EPERM)),
    RULE(swapoff, REFUSE(EPERM)),
#ifdef __x86_64__
    /* I/O ports */
    RULE(iopl, REFUSE(EPERM)),
    RULE(ioperm, REFUSE(EPERM)),
    /* segment descriptors: seldom used and often vulnerable; WSL's kernel has the call */
    RULE(modify_ldt, REFUSE(ENOSYS)),
#endif
    /* the host sets the clock */
    RULE(settimeofday, REFUSE(EPERM)),
    RULE(clock_settime, REFUSE(EPERM)),
    RULE(adjtimex, REFUSE(EPERM)),
    RULE(clock_adjtime, REFUSE(EPERM)),
    /* keyrings are outside all namespaces and had many vulnerabilities */
    RULE(keyctl, REFUSE(EPERM)),
    RULE(add_key, REFUSE(EPERM)),
    RULE(request_key, REFUSE(EPERM)),
    /* suspends the kernel in the middle of a copy, which makes its races easy to win */
    RULE(userfaultfd, REFUSE(EPERM)),
    /* opens files without the permission to search the directories above them */
    RULE(open_by_handle_at, REFUSE(EPERM)),
};

/* Refused without `user_namespaces`. */
static const struct seccomp_rule refused_namespaces[] = {
    /* A new user namespace gives every capability inside it, and so reaches kernel code that was
     * written for root alone. The other namespaces need one. */
    RULE(clone, REFUSE(EPERM), ARGUMENT_HAS_ANY(0, NAMESPACE_FLAGS)),
    /* (in clone this bit is part of the signal) */
    RULE(unshare, REFUSE(EPERM), ARGUMENT_HAS_ANY(0, NAMESPACE_FLAGS | CLONE_NEWTIME)),
    RULE(setns, REFUSE(EPERM)),
    /* changes which files a path names */
    RULE(mount, REFUSE(EPERM)),
    RULE(umount2, REFUSE(EPERM)),
    RULE(pivot_root, REFUSE(EPERM)),
    RULE(chroot, REFUSE(EPERM)),
    RULE(fsopen, REFUSE(EPERM)),
    RULE(fsconfig, REFUSE(EPERM)),
    RULE(fsmount, REFUSE(EPERM)),
    RULE(fspick, REFUSE(EPERM)),
    RULE(move_mount, REFUSE(EPERM)),
    RULE(open_tree, REFUSE(EPERM)),
    RULE(open_tree_attr, REFUSE(EPERM)),
    RULE(mount_setattr, REFUSE(EPERM)),
};

int seccomp_server_filter(struct seccomp_filter *filter, bool user_namespaces)
{
    seccomp_filter_start(filter, REFUSE(ENOSYS));
    seccomp_filter_add(filter, always_refused, ARRAY_LENGTH(always_refused));
    if (!user_namespaces)
        seccomp_filter_add(filter, refused_namespaces, ARRAY_LENGTH(refused_namespaces));
    return seccomp_filter_end(filter, ALLOW);
}

int seccomp_load_server_filter(bool user_namespaces)
{
    struct seccomp_filter filter;
    int result = seccomp_server_filter(&filter, user_namespaces);
    return result < 0 ? result : seccomp_filter_load(&filter);
}
