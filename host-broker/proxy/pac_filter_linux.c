/* Seccomp filters for the processes that meet libproxy: see pac_resolver.h.
 *
 * Lists of what is refused, with errors: the interpreter is large and foreign, so what it needs cannot be
 * listed. What matters: it starts no program, writes no file, looks into no process, and reaches no kind
 * of socket but those of name resolution. Connections by TCP are not kept from it (resolvers use them);
 * it has nothing to tell.
 */
#include "host-broker/proxy/pac_resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "common/os/cleanup.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "name this architecture's system calls"
#endif

#define X32_BIT 0x40000000u
#define FIELD(name) ((uint32_t)offsetof(struct seccomp_data, name))
#define LOW_WORD(index) (FIELD(args) + 8 * (index)) /* both architectures are little-endian */

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define REFUSE(error) RETURN(SECCOMP_RET_ERRNO | (error))
/* Skips the next `count` instructions unless the loaded word is `value`. */
#define UNLESS(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count)

#define PROLOGUE                                                                                   \
    LOAD(FIELD(arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),                    \
        RETURN(SECCOMP_RET_KILL_PROCESS), LOAD(FIELD(nr)),                                         \
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1), REFUSE(ENOSYS)
#define DENY(name) UNLESS(__NR_##name, 1), REFUSE(EPERM)
#define DENY_AS(name, error) UNLESS(__NR_##name, 1), REFUSE(error)
/* Opening for anything but reading; `index` is the argument with the flags. */
#define DENY_WRITING(name, index)                                                                  \
    UNLESS(__NR_##name, 4), LOAD(LOW_WORD(index)),                                                 \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1),         \
        REFUSE(EACCES), RETURN(SECCOMP_RET_ALLOW)

static int load(const struct sock_filter *filter, size_t count)
{
    struct sock_fprog program = {.len = (unsigned short)count, .filter = (void *)filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
        return -errno;
    return 0;
}

static const struct sock_filter settings_filter[] = {
    PROLOGUE,
    UNLESS(__NR_socket, 4),
    LOAD(LOW_WORD(0)),
    UNLESS(AF_UNIX, 1), /* the desktop's settings come over D-Bus */
    RETURN(SECCOMP_RET_ALLOW),
    REFUSE(EACCES),
    DENY_AS(io_uring_setup, ENOSYS),
    DENY(ptrace),
    RETURN(SECCOMP_RET_ALLOW),
};

int pac_filter_settings(void)
{
    return load(settings_filter, ARRAY_LENGTH(settings_filter));
}

static const struct sock_filter script_filter[] = {
    PROLOGUE,
    /* starts no program */
    DENY(execve),
    DENY(execveat),
    /* looks into, and signals, no other process */
    DENY(ptrace),
    DENY(process_vm_readv),
    DENY(process_vm_writev),
    DENY(kill),
    DENY(pidfd_open),
    DENY(pidfd_getfd),
    DENY(pidfd_send_signal),
    /* changes no file */
    DENY_WRITING(openat, 2),
    DENY_AS(openat2, ENOSYS),
    DENY(unlinkat),
    DENY(renameat2),
    DENY(mkdirat),
    DENY(mknodat),
    DENY(linkat),
    DENY(symlinkat),
    DENY(fchmodat),
    DENY(fchownat),
    DENY(truncate),
#ifdef __x86_64__
    DENY_WRITING(open, 1),
    DENY(creat),
    DENY(unlink),
    DENY(rename),
    DENY(mkdir),
    DENY(rmdir),
    DENY(mknod),
    DENY(link),
    DENY(symlink),
    DENY(chmod),
    DENY(chown),
    DENY(lchown),
#endif
    DENY(renameat),
    /* the kernel's doors */
    DENY_AS(io_uring_setup, ENOSYS),
    DENY(bpf),
    DENY(perf_event_open),
    DENY(userfaultfd),
    DENY(keyctl),
    DENY(add_key),
    DENY(request_key),
    DENY(unshare),
    DENY(setns),
    DENY(mount),
    DENY(umount2),
    DENY(pivot_root),
    DENY(chroot),
    /* sockets of name resolution: IPv4, IPv6, local services, the list of interfaces */
    UNLESS(__NR_socket, 9),
    LOAD(LOW_WORD(0)),
    UNLESS(AF_UNIX, 1),
    RETURN(SECCOMP_RET_ALLOW),
    UNLESS(AF_NETLINK, 1),
    RETURN(SECCOMP_RET_ALLOW),
    UNLESS(AF_INET, 1),
    RETURN(SECCOMP_RET_ALLOW),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0),
    REFUSE(EAFNOSUPPORT),
    RETURN(SECCOMP_RET_ALLOW),
};

int pac_filter_script(void)
{
    return load(script_filter, ARRAY_LENGTH(script_filter));
}
