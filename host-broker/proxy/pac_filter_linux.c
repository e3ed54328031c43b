/* System call filters of the processes that run libproxy: deny lists, what is not refused is
 * allowed.
 *
 * The calls that libproxy and its interpreter need cannot be listed. The filters make sure that the
 * process starts no program, writes no file, inspects no other process and has no sockets except
 * those of name resolution. TCP connections stay possible, because resolvers use them; the process
 * knows no secret that it could send.
 */
#include "host-broker/proxy/pac_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "common/os/cleanup.h"
#include "common/os/seccomp_filter_linux.h"

/* flags of open(2) */
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

static int load(const struct seccomp_rule *rules, size_t count)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return seccomp_filter_load_table(rules, count, ALLOW, KILL);
}

static const struct seccomp_rule settings_rules[] = {
    /* no network; the desktop's settings come over D-Bus */
    RULE(socket, REFUSE(EACCES), ARGUMENT_IS_NOT(0, AF_UNIX)),
    RULE(io_uring_setup, REFUSE(ENOSYS)),
    RULE(ptrace, REFUSE(EPERM)),
};

int pac_filter_settings(void)
{
    return load(settings_rules, ARRAY_LENGTH(settings_rules));
}

static const struct seccomp_rule script_rules[] = {
    /* starts no program */
    RULE(execve, REFUSE(EPERM)),
    RULE(execveat, REFUSE(EPERM)),
    /* looks into, and signals, no other process */
    RULE(ptrace, REFUSE(EPERM)),
    RULE(process_vm_readv, REFUSE(EPERM)),
    RULE(process_vm_writev, REFUSE(EPERM)),
    RULE(kill, REFUSE(EPERM)),
    RULE(pidfd_open, REFUSE(EPERM)),
    RULE(pidfd_getfd, REFUSE(EPERM)),
    RULE(pidfd_send_signal, REFUSE(EPERM)),
    /* changes no file */
    RULE(openat, REFUSE(EACCES), ARGUMENT_HAS_ANY(2, WRITES)),
    RULE(openat2, REFUSE(ENOSYS)),
    RULE(unlinkat, REFUSE(EPERM)),
    RULE(renameat2, REFUSE(EPERM)),
    RULE(mkdirat, REFUSE(EPERM)),
    RULE(mknodat, REFUSE(EPERM)),
    RULE(linkat, REFUSE(EPERM)),
    RULE(symlinkat, REFUSE(EPERM)),
    RULE(fchmodat, REFUSE(EPERM)),
    RULE(fchownat, REFUSE(EPERM)),
    RULE(truncate, REFUSE(EPERM)),
#ifdef __x86_64__
    RULE(open, REFUSE(EACCES), ARGUMENT_HAS_ANY(1, WRITES)),
    RULE(creat, REFUSE(EPERM)),
    RULE(unlink, REFUSE(EPERM)),
    RULE(rename, REFUSE(EPERM)),
    RULE(mkdir, REFUSE(EPERM)),
    RULE(rmdir, REFUSE(EPERM)),
    RULE(mknod, REFUSE(EPERM)),
    RULE(link, REFUSE(EPERM)),
    RULE(symlink, REFUSE(EPERM)),
    RULE(chmod, REFUSE(EPERM)),
    RULE(chown, REFUSE(EPERM)),
    RULE(lchown, REFUSE(EPERM)),
#endif
    RULE(renameat, REFUSE(EPERM)),
    /* parts of the kernel that name resolution does not need */
    RULE(io_uring_setup, REFUSE(ENOSYS)),
    RULE(bpf, REFUSE(EPERM)),
    RULE(perf_event_open, REFUSE(EPERM)),
    RULE(userfaultfd, REFUSE(EPERM)),
    RULE(keyctl, REFUSE(EPERM)),
    RULE(add_key, REFUSE(EPERM)),
    RULE(request_key, REFUSE(EPERM)),
    RULE(unshare, REFUSE(EPERM)),
    RULE(setns, REFUSE(EPERM)),
    RULE(mount, REFUSE(EPERM)),
    RULE(umount2, REFUSE(EPERM)),
    RULE(pivot_root, REFUSE(EPERM)),
    RULE(chroot, REFUSE(EPERM)),
    /* sockets of name resolution: IPv4, IPv6, local services, the list of interfaces */
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_UNIX)),
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_NETLINK)),
    RULE(socket, REFUSE(EAFNOSUPPORT), ARGUMENT_IS_NOT(0, AF_INET), ARGUMENT_IS_NOT(0, AF_INET6)),
};

int pac_filter_script(void)
{
    return load(script_rules, ARRAY_LENGTH(script_rules));
}
