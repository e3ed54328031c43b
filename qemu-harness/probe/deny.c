/* Simulates a kernel without a feature, for one program: the system call fails as on a kernel that
 * is built without that feature.
 *
 *     netfilter    socket(AF_NETLINK, ..., NETLINK_NETFILTER): EPROTONOSUPPORT (no nfnetlink)
 *     netns        clone and unshare with CLONE_NEWNET: EINVAL (no network namespaces)
 *     permission   the same: EPERM (no CAP_SYS_ADMIN)
 *
 * Needs root, and does not set no_new_privs, so that the program keeps its privileges.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/seccomp_filter_linux.h"
#include "qemu-harness/probe/probe.h"

static const struct seccomp_rule netfilter[] = {
    RULE(socket, REFUSE(EPROTONOSUPPORT), ARGUMENT_IS(0, AF_NETLINK),
         ARGUMENT_IS(2, NETLINK_NETFILTER)),
};
static const struct seccomp_rule netns[] = {
    RULE(clone, REFUSE(EINVAL), ARGUMENT_HAS_ANY(0, CLONE_NEWNET)),
    RULE(unshare, REFUSE(EINVAL), ARGUMENT_HAS_ANY(0, CLONE_NEWNET)),
};
static const struct seccomp_rule permission[] = {
    RULE(clone, REFUSE(EPERM), ARGUMENT_HAS_ANY(0, CLONE_NEWNET)),
    RULE(unshare, REFUSE(EPERM), ARGUMENT_HAS_ANY(0, CLONE_NEWNET)),
};

static int load(const char *missing)
{
    if (strcmp(missing, "netfilter") == 0)
        return seccomp_filter_load_table(netfilter, ARRAY_LENGTH(netfilter), ALLOW, ALLOW);
    if (strcmp(missing, "netns") == 0)
        return seccomp_filter_load_table(netns, ARRAY_LENGTH(netns), ALLOW, ALLOW);
    if (strcmp(missing, "permission") == 0)
        return seccomp_filter_load_table(permission, ARRAY_LENGTH(permission), ALLOW, ALLOW);
    return -EINVAL;
}

static int probe_deny(int argc, char **argv)
{
    (void)argc;
    int result = load(argv[1]);
    if (result < 0)
        probe_die("%s: %s", argv[1], strerror(-result));
    execv(argv[2], argv + 2);
    probe_die("%s: %s", argv[2], strerror(errno));
}

static const struct probe_verb verbs[] = {
    {"deny", "netfilter|netns|permission PROGRAM [ARGUMENT...]",
     "runs a program as if the kernel lacked that", NULL, probe_deny, 2, 16},
};
const struct probe_verbs deny_verbs = {verbs, ARRAY_LENGTH(verbs)};
