/* The drop: from root to an ordinary account, then the proof of it.
 *
 * A table of steps, in an order in which each is still possible and none can be undone by a later
 * one: what needs a capability comes before the ids change, the securebits are locked while
 * CAP_SETPCAP is there, the filter comes late because it would refuse the steps before it. A failed
 * step ends the child: nothing may run after half a drop.
 *
 * The proof reads /proc/self/status, which shows the kernel's own state of the process; an absent
 * line counts as wrong. Then it tries to become root again.
 *
 * Ids are changed by system calls: the functions of the C library would do it in all threads, and
 * there is one.
 */
#include "init/walls/drop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
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
#define STATUS_MAX 8192   /* the kernel writes about 1500 bytes */
#define CORE_NO_HANDLER 1 /* the kernel starts no handler either (fs/coredump.c) */
#define FIRST_SIGNAL 1
#define LAST_SIGNAL 64
#define KERNEL_SIGSET_BYTES 8
#define LAST_CAPABILITY_TRIED 63 /* capability sets are 64 bits */

/* uid 0 gives no capabilities to this process and all it starts, and this cannot be changed back.
 * Without NO_SETUID_FIXUP, so that changing the uid clears the capabilities; locked that way. */
#define DROP_SECUREBITS                                                                            \
    (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |                        \
     SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

struct drop_state {
    const struct drop_plan *plan;
    int status_fd; /* /proc/self/status, opened while there is a /proc; read at the end */
};

/* 0 or a negative errno. A step may set `why`; otherwise its name and the errno are reported. */
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

/* Closes all descriptors but 0 to 2 and those to keep, range by range. Those of the cgroup and the
 * root are closed by their own steps. */
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

/* An ignored signal stays ignored through exec, SIGPIPE above all. This is the system call itself,
 * since the C library reserves some real-time signals and would leave them as they were inherited.
 * All zero means SIG_DFL, no flag, no mask (struct kernel_sigaction is not larger on any
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

/* The C library's functions would link its code for threads. */
static int limit_get(int resource, struct rlimit *limit)
{
    return (int)syscall(SYS_prlimit64, 0, resource, NULL, limit);
}

static int limit_set(int resource, const struct rlimit *limit)
{
    return (int)syscall(SYS_prlimit64, 0, resource, limit, NULL);
}

/* Sets the limit, or, where even root may not raise it (a container), the highest one allowed. */
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

/* A hard limit that even root cannot raise stays. */
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

/* The cgroup limits the number of processes; the limit per uid would count those of other sandboxes
 * too. Core files are off until ulimit -c asks for them, so that a crash leaves none in the user's
 * folders. The out-of-memory killer prefers the server and all it starts; the relay keeps init's
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

/* Up to the first capability that this kernel does not know. */
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

/* ---- proof ---- */

/* The text behind "NAME:" up to the end of its line, without white space before it, or NULL. */
static const char *status_value(const char *status, const char *name, size_t *length)
{
    size_t name_length = strlen(name);

    for (const char *line = status; line && *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, name, name_length) == 0 && line[name_length] == ':') {
            const char *value = line + name_length + 1;
            value += strspn(value, " \t");
            *length = strcspn(value, "\n");
            return value;
        }
        line = !end ? NULL : end + 1;
    }
    return NULL;
}

static int expect(const char *status, const char *name, const char *wanted, struct failure *why)
{
    size_t length = 0;
    const char *value = status_value(status, name, &length);

    if (!value)
        return failure_set(why, EPERM, "/proc/self/status has no %s", name);
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--;
    if (length != strlen(wanted) || memcmp(value, wanted, length) != 0)
        return failure_set(why, EPERM, "%s is \"%.*s\" and should be \"%s\"", name, (int)length,
                           value, wanted);
    return 0;
}

static int expect_ids(const char *status, const char *name, unsigned id, struct failure *why)
{
    char wanted[64];

    snprintf(wanted, sizeof(wanted), "%u\t%u\t%u\t%u", id, id, id, id);
    return expect(status, name, wanted, why);
}

static int check_status(const struct drop_plan *plan, const char *status, struct failure *why)
{
    static const char *const capability_sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    const char *filter = plan->filter == DROP_FILTER_SERVER ? "2" : "0";
    int result = expect_ids(status, "Uid", plan->account->uid, why);

    if (result == 0)
        result = expect_ids(status, "Gid", plan->account->gid, why);
    if (result == 0)
        result = expect(status, "Groups", "", why);
    for (size_t i = 0; result == 0 && i < ARRAY_LENGTH(capability_sets); i++)
        result = expect(status, capability_sets[i], "0000000000000000", why);
    if (result == 0)
        result = expect(status, "NoNewPrivs", "1", why);
    if (result == 0)
        result = expect(status, "Seccomp", filter, why);
    return result;
}

/* Each of these must be refused. When one works, the process has gained a right and must end. */
static const char *regain_root(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct all[_LINUX_CAPABILITY_U32S_3] = {{~0u, ~0u, ~0u},
                                                                   {~0u, ~0u, ~0u}};
    gid_t root_group = 0;

    if (syscall(SYS_setuid, 0) == 0)
        return "setuid(0)";
    if (syscall(SYS_setresuid, -1, 0, -1) == 0)
        return "setresuid to 0";
    if (syscall(SYS_setgid, 0) == 0)
        return "setgid(0)";
    if (syscall(SYS_setresgid, -1, 0, -1) == 0)
        return "setresgid to 0";
    if (syscall(SYS_setgroups, 1, &root_group) == 0)
        return "setgroups";
    if (syscall(SYS_capset, &header, all) == 0)
        return "capset";
    if (prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) == 0)
        return "clearing the securebits";
    if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
        return "clearing no_new_privs";
    return NULL;
}

int drop_check_identity(const struct drop_plan *plan, int status_fd, struct failure *why)
{
    char status[STATUS_MAX];
    ssize_t length = io_read_whole(status_fd, status, sizeof(status));

    if (length < 0)
        return failure_errno(why, (int)-length, "read /proc/self/status");
    return check_status(plan, status, why);
}

int drop_check_no_way_back(struct failure *why)
{
    const char *way = regain_root();

    if (way)
        return failure_set(why, EPERM, "%s works: root could be regained", way);
    return 0;
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

void drop_plan_server(struct drop_plan *plan, const struct boot_config *config,
                      const struct account *account, int cgroup_fd)
{
    *plan = (struct drop_plan){
        .account = account,
        .cgroup_fd = cgroup_fd,
        .controlling_tty = -1,
        .limit_nofile = config->limit_nofile,
        .no_core = config->place == PLACE_WSL,
        .user_namespaces = config->user_namespaces,
        .filter = DROP_FILTER_SERVER,
    };
}

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
