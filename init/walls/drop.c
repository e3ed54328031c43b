/* The drop: from root to an ordinary account (design, section 5).
 *
 * A table of steps, in an order in which each is still possible and none can be undone by a later
 * one: what needs a capability comes before the ids change, the securebits are locked while
 * CAP_SETPCAP is there, the filter comes last because it would refuse the steps before it. A failed
 * step ends the child: half a drop is no state that anything may run in. What was done is then read
 * back and tried (drop_verify.c).
 *
 * Ids are changed by the system calls themselves: the C library's functions would do it in all
 * threads, and there is one.
 */
#include "init/walls/drop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/machine/cgroups.h"
#include "init/system/empty_root.h"
#include "init/walls/seccomp.h"

#define DROP_KEEP_MAX 32
#define CORE_NO_HANDLER 1 /* for the kernel that means: not even for a pipe (fs/coredump.c) */
#define FIRST_SIGNAL 1
#define LAST_SIGNAL 64
#define KERNEL_SIGSET_BYTES 8
#define LAST_CAPABILITY_TRIED 63 /* capability sets are 64 bits */

/* Root is no longer special to this process and all it starts, and that cannot be changed back.
 * Without NO_SETUID_FIXUP, so that changing the uid clears the capabilities; locked that way. */
#define DROP_SECUREBITS                                                                            \
    (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |                        \
     SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

struct drop_state {
    const struct drop_plan *plan;
    int status_fd; /* /proc/self/status, opened while there is a /proc; read when all is done */
};

/* Every step returns 0 or a negative errno; one that sets `why` itself says more than its name. */
typedef int drop_step(struct drop_state *state, struct failure *why);

static int step_session(struct drop_state *state, struct failure *why)
{
    (void)why;
    if (setsid() < 0)
        return -errno;
    if (state->plan->controlling_tty >= 0 && ioctl(state->plan->controlling_tty, TIOCSCTTY, 0) < 0)
        return -errno;
    return 0;
}

static void sort(int *numbers, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        for (unsigned j = i; j > 0 && numbers[j - 1] > numbers[j]; j--) {
            int smaller = numbers[j];
            numbers[j] = numbers[j - 1];
            numbers[j - 1] = smaller;
        }
    }
}

/* Closes all but 0 to 2 and those to keep: the gaps between them, in order. The cgroup's and the
 * root's are kept for their steps. */
static int step_descriptors(struct drop_state *state, struct failure *why)
{
    int keep[DROP_KEEP_MAX + 2];
    unsigned count = state->plan->keep_count, from = STDERR_FILENO + 1;

    if (count > DROP_KEEP_MAX)
        return failure_set(why, E2BIG, "more than %d descriptors to keep", DROP_KEEP_MAX);
    if (count > 0)
        memcpy(keep, state->plan->keep_fds, count * sizeof(*keep));
    keep[count++] = state->plan->cgroup_fd;
    keep[count++] = state->plan->root_fd;
    sort(keep, count);
    for (unsigned i = 0; i < count; i++) {
        if (keep[i] < 0 || (unsigned)keep[i] < from)
            continue;
        if ((unsigned)keep[i] > from && syscall(SYS_close_range, from, keep[i] - 1, 0) < 0)
            return -errno;
        from = (unsigned)keep[i] + 1;
    }
    if (syscall(SYS_close_range, from, ~0u, 0) < 0)
        return -errno;
    state->status_fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    return state->status_fd < 0 ? failure_errno(why, errno, "open /proc/self/status") : 0;
}

/* An ignored signal stays ignored through exec: SIGPIPE above all. The system call itself, since
 * the C library keeps some real-time signals to itself and would leave them as they were inherited;
 * all zero means SIG_DFL, no flag, no mask (struct kernel_sigaction is not larger on any
 * architecture of ours). */
static int step_signals(struct drop_state *state, struct failure *why)
{
    static const uint64_t defaults[4];
    sigset_t none;

    (void)state;
    (void)why;
    for (int number = FIRST_SIGNAL; number <= LAST_SIGNAL; number++) {
        if (number == SIGKILL || number == SIGSTOP)
            continue;
        if (syscall(SYS_rt_sigaction, number, defaults, NULL, KERNEL_SIGSET_BYTES) < 0)
            return -errno;
    }
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int step_umask(struct drop_state *state, struct failure *why)
{
    (void)state;
    (void)why;
    umask(022);
    return 0;
}

static_assert(sizeof(rlim_t) == 8, "struct rlimit is the kernel's struct rlimit64");

/* The C library's functions would bring all its machinery for threads. */
static int limit_get(int resource, struct rlimit *limit)
{
    return (int)syscall(SYS_prlimit64, 0, resource, NULL, limit);
}

static int limit_set(int resource, const struct rlimit *limit)
{
    return (int)syscall(SYS_prlimit64, 0, resource, limit, NULL);
}

/* As many as are wanted, or, where even root may not raise it (a container), as many as there may
 * be. */
static int limit_raise(int resource, rlim_t wanted)
{
    struct rlimit limit = {.rlim_cur = wanted, .rlim_max = wanted};

    if (limit_set(resource, &limit) == 0)
        return 0;
    if (errno != EPERM || limit_get(resource, &limit) < 0)
        return -errno;
    limit.rlim_cur = limit.rlim_max;
    return limit_set(resource, &limit) < 0 ? -errno : 0;
}

/* A hard limit below the one that is wanted may be one that even root cannot raise: then it
 * stays. */
static int limit_core(bool no_handler)
{
    const struct rlimit none = {.rlim_cur = CORE_NO_HANDLER, .rlim_max = CORE_NO_HANDLER};
    struct rlimit core;

    if (no_handler && limit_set(RLIMIT_CORE, &none) == 0)
        return 0;
    if (limit_get(RLIMIT_CORE, &core) < 0)
        return -1;
    core.rlim_cur = 0;
    return limit_set(RLIMIT_CORE, &core);
}

/* The number of processes is the cgroup's to limit: per uid it would count by chance. Core files
 * are off until someone asks for them (ulimit -c), or crashes would litter the user's folders. What
 * the server starts is what the out-of-memory killer takes first; the agent keeps init's
 * protection. */
static int step_limits(struct drop_state *state, struct failure *why)
{
    int result = limit_raise(RLIMIT_NOFILE, (rlim_t)state->plan->limit_nofile);

    if (result < 0)
        return failure_errno(why, -result, "limit of open files");
    result = limit_raise(RLIMIT_NPROC, RLIM_INFINITY);
    if (result < 0)
        return failure_errno(why, -result, "limit of processes");
    if (limit_core(state->plan->no_core) < 0)
        return failure_errno(why, errno, "limit of core files");
    if (state->plan->filter != DROP_FILTER_SERVER)
        return 0;
    result = io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0, "0");
    return result < 0 ? failure_errno(why, -result, "oom_score_adj") : 0;
}

static int step_cgroup(struct drop_state *state, struct failure *why)
{
    int result;

    if (state->plan->cgroup_fd < 0)
        return 0;
    result = cgroup_enter(state->plan->cgroup_fd, why);
    close(state->plan->cgroup_fd);
    return result;
}

static int step_root(struct drop_state *state, struct failure *why)
{
    if (state->plan->root_fd > 0) {
        int result = setns(state->plan->root_fd, CLONE_NEWNS) < 0 ? -errno : 0;
        close(state->plan->root_fd);
        return result;
    }
    return state->plan->empty_root ? empty_root_enter(why) : 0;
}

static int step_securebits(struct drop_state *state, struct failure *why)
{
    (void)state;
    (void)why;
    return prctl(PR_SET_SECUREBITS, DROP_SECUREBITS, 0, 0, 0) < 0 ? -errno : 0;
}

/* Up to the first one that this kernel does not know. */
static int step_bounding_set(struct drop_state *state, struct failure *why)
{
    (void)state;
    (void)why;
    for (int capability = 0; capability <= LAST_CAPABILITY_TRIED; capability++) {
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0)
            continue;
        return errno == EINVAL && capability > 0 ? 0 : -errno;
    }
    return 0;
}

static int step_groups(struct drop_state *state, struct failure *why)
{
    (void)state;
    (void)why;
    return syscall(SYS_setgroups, 0, NULL) < 0 ? -errno : 0;
}

static int step_gid(struct drop_state *state, struct failure *why)
{
    gid_t gid = state->plan->account->gid;

    if (gid == 0)
        return failure_set(why, EPERM, "the account's gid is 0");
    return syscall(SYS_setresgid, gid, gid, gid) < 0 ? -errno : 0;
}

static int step_uid(struct drop_state *state, struct failure *why)
{
    uid_t uid = state->plan->account->uid;

    if (uid == 0)
        return failure_set(why, EPERM, "the account's uid is 0");
    return syscall(SYS_setresuid, uid, uid, uid) < 0 ? -errno : 0;
}

static int step_capabilities(struct drop_state *state, struct failure *why)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

    (void)state;
    (void)why;
    if (syscall(SYS_capset, &header, none) < 0)
        return -errno;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ? -errno : 0;
}

static int step_no_new_privileges(struct drop_state *state, struct failure *why)
{
    (void)state;
    (void)why;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int step_filter(struct drop_state *state, struct failure *why)
{
    (void)why;
    switch (state->plan->filter) {
    case DROP_FILTER_SERVER:
        return seccomp_load_server_filter(state->plan->user_namespaces);
    case DROP_FILTER_NONE:
        return 0;
    }
    return -EINVAL;
}

static int step_verify(struct drop_state *state, struct failure *why)
{
    int result = drop_check_identity(state->plan, state->status_fd, why);

    fd_close(&state->status_fd);
    return result < 0 ? result : drop_check_no_way_back(why);
}

static int step_directory(struct drop_state *state, struct failure *why)
{
    (void)state;
    (void)why;
    return chdir("/") < 0 ? -errno : 0;
}

static const struct {
    const char *name;
    drop_step *run;
} drop_steps[] = {
    {"session", step_session},
    {"descriptors", step_descriptors},
    {"signals", step_signals},
    {"umask", step_umask},
    {"limits", step_limits},
    {"cgroup", step_cgroup},
    {"root directory", step_root},
    {"securebits", step_securebits},
    {"bounding set", step_bounding_set},
    {"groups", step_groups},
    {"gid", step_gid},
    {"uid", step_uid},
    {"capabilities", step_capabilities},
    {"no_new_privs", step_no_new_privileges},
    {"seccomp", step_filter},
    {"verification", step_verify},
    {"working directory", step_directory},
};

int drop_to_account(const struct drop_plan *plan, struct failure *why)
{
    struct drop_state state = {.plan = plan, .status_fd = -1};

    for (size_t i = 0; i < ARRAY_LENGTH(drop_steps); i++) {
        struct failure detail = {""};
        int result = drop_steps[i].run(&state, &detail);

        if (result >= 0)
            continue;
        fd_close(&state.status_fd);
        if (detail.text[0] != '\0')
            return failure_set(why, -result, "drop, %s: %s", drop_steps[i].name, detail.text);
        return failure_errno(why, -result, "drop, %s", drop_steps[i].name);
    }
    return 0;
}
