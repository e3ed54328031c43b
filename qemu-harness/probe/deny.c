/* A kernel without something, for one program: a system call answers as it would where that were not built in.
 *
 *     netfilter    socket(AF_NETLINK, ..., NETLINK_NETFILTER): EPROTONOSUPPORT (no nfnetlink)
 *     netns        clone and unshare with CLONE_NEWNET: EINVAL (no network namespaces)
 *     permission   the same: EPERM (no CAP_SYS_ADMIN)
 *
 * Needs root, and leaves no_new_privs off: what is run then is as privileged as before. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/probe/probe.h"

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define IF_BIT(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (value), (yes), (no))
#define ANSWER(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int load(struct sock_filter *filter, size_t length)
{
    struct sock_fprog program = {.len = (unsigned short)length, .filter = filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int deny_netfilter(void)
{
    struct sock_filter filter[] = {
        LOAD(nr),      IF(SYS_socket, 0, 5),        LOAD(args[0]),           IF(AF_NETLINK, 0, 3),
        LOAD(args[2]), IF(NETLINK_NETFILTER, 0, 1), ANSWER(EPROTONOSUPPORT), ALLOW,
    };
    return load(filter, ARRAY_LENGTH(filter));
}

static int deny_namespace(unsigned error)
{
    struct sock_filter filter[] = {
        LOAD(nr),      IF(SYS_clone, 1, 0),        IF(SYS_unshare, 0, 3),
        LOAD(args[0]), IF_BIT(CLONE_NEWNET, 0, 1), ANSWER(error),
        ALLOW,
    };
    return load(filter, ARRAY_LENGTH(filter));
}

static int probe_deny(int argc, char **argv)
{
    int result = -1;
    (void)argc;
    errno = EINVAL;
    if (strcmp(argv[1], "netfilter") == 0)
        result = deny_netfilter();
    else if (strcmp(argv[1], "netns") == 0)
        result = deny_namespace(EINVAL);
    else if (strcmp(argv[1], "permission") == 0)
        result = deny_namespace(EPERM);
    if (result < 0)
        probe_die("%s: %s", argv[1], strerror(errno));
    execv(argv[2], argv + 2);
    probe_die("%s: %s", argv[2], strerror(errno));
}

static const struct probe_verb verbs[] = {
    {"deny", "netfilter|netns|permission PROGRAM [ARGUMENT...]",
     "runs a program as if the kernel lacked that", NULL, probe_deny, 2, 16},
};
const struct probe_verbs deny_verbs = {verbs, ARRAY_LENGTH(verbs)};
