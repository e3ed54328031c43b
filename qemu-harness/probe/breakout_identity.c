/* Breakout: identity, capabilities, priority, and system calls that programs in a sandbox do not
 * need. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/probe/breakout.h"
#include "qemu-harness/probe/probe.h"

#define ORDINARY_ID 1000
#define CAP_NET_RAW_NUMBER 13
#define IOPRIO_REAL_TIME (1 << 13)

/* Makes a system call with all arguments 0 (the id of root; a null address). */
static long call_zero(const struct breakout_vector *vector)
{
    return syscall(vector->number, 0, 0, 0, 0, 0, 0);
}

/* setfsuid reports no error; it returns the previous id. */
static long file_ids(const struct breakout_vector *vector)
{
    (void)vector;
    (void)syscall(SYS_setfsuid, 0);
    errno = EPERM;
    return syscall(SYS_setfsuid, -1) == 0 ? 0 : -1;
}

static long set_capabilities(unsigned effective)
{
    uint32_t header[2] = {0x20080522, 0}; /* _LINUX_CAPABILITY_VERSION_3 */
    uint32_t data[6] = {effective, ~0u, ~0u, effective, ~0u, ~0u};
    return syscall(SYS_capset, header, data);
}

static long all_capabilities(const struct breakout_vector *vector)
{
    (void)vector;
    return set_capabilities(~0u);
}

static long ambient(const struct breakout_vector *vector)
{
    (void)vector;
    (void)set_capabilities(
        ~0u); /* it must be inheritable first; that step is a vector of its own */
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW_NUMBER, 0, 0);
}

static long secure_bits(const struct breakout_vector *vector)
{
    (void)vector;
    return prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
}

/* Runs a program of the shared folder as an ordinary account; the program reports whether it has
 * root's uid or gid. */
static long execute_marked(const struct breakout_vector *vector)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (syscall(SYS_setgroups, 0, NULL) < 0 ||
                               syscall(SYS_setresgid, ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) < 0 ||
                               syscall(SYS_setresuid, ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) < 0))
            _exit(PROBE_BROKEN);
        int null = open("/dev/null", O_WRONLY);
        (void)dup2(null, STDOUT_FILENO);
        execl(breakout_path(vector), "marked", "be-root", (char *)NULL);
        _exit(errno == EACCES ? PROBE_REFUSED : PROBE_BROKEN);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return -1;
    errno = WIFEXITED(status) && WEXITSTATUS(status) == PROBE_REFUSED ? EPERM : EINVAL;
    return WIFEXITED(status) && WEXITSTATUS(status) == PROBE_WORKED ? 0 : -1;
}

static long give_to_root(const struct breakout_vector *vector)
{
    CLEANUP_FD int fd = open(vector->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    long result = fd < 0 ? -1 : fchown(fd, (uid_t)vector->number, 0);
    int error = errno;
    unlink(vector->path);
    errno = error;
    return result;
}

static long take_from_root(const struct breakout_vector *vector)
{
    return chown(breakout_path(vector), getuid(), getgid());
}

static long change_mode(const struct breakout_vector *vector)
{
    return chmod(breakout_path(vector), (mode_t)vector->number);
}

static long priority(const struct breakout_vector *vector)
{
    (void)vector;
    return setpriority(PRIO_PROCESS, 0, -20);
}

static long real_time(const struct breakout_vector *vector)
{
    (void)vector;
    struct sched_param parameter = {.sched_priority = 50}; /* musl's own function does nothing */
    return syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &parameter);
}

static long real_time_disk(const struct breakout_vector *vector)
{
    (void)vector;
    return syscall(SYS_ioprio_set, 1, 0, IOPRIO_REAL_TIME);
}

static long higher_limit(const struct breakout_vector *vector)
{
    struct rlimit limit;
    (void)vector;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -1;
    limit.rlim_max += 1;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

static long no_oom(const struct breakout_vector *vector)
{
    CLEANUP_FD int fd = open(vector->path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : write(fd, "-1000", 5);
}

static const struct breakout_vector identity[] = {
    {.name = "setuid 0", .attempt = call_zero, .number = SYS_setuid},
    {.name = "setresuid 0", .attempt = call_zero, .number = SYS_setresuid},
    {.name = "setreuid 0", .attempt = call_zero, .number = SYS_setreuid},
    {.name = "setgid 0", .attempt = call_zero, .number = SYS_setgid},
    {.name = "setresgid 0", .attempt = call_zero, .number = SYS_setresgid},
    {.name = "setgroups", .attempt = call_zero, .number = SYS_setgroups},
    {.name = "setfsuid 0", .attempt = file_ids},
    {.name = "every capability by capset", .attempt = all_capabilities},
    {.name = "an ambient capability", .attempt = ambient},
    {.name = "securebits", .attempt = secure_bits},
    {.name = "a set-uid program of a shared folder", .attempt = execute_marked, .path = "set-uid"},
    {.name = "a set-gid program of a shared folder", .attempt = execute_marked, .path = "set-gid"},
    {.name = "an own file given to root", .attempt = give_to_root, .path = "/tmp/breakout-given"},
    {.name = "a file of root taken", .attempt = take_from_root, .path = "/etc/passwd"},
    {.name = "set-uid on a program of root",
     .attempt = change_mode,
     .path = "/sbin/codev-init",
     .number = 04755},
    {.name = "a folder of root opened to all",
     .attempt = change_mode,
     .path = "/root",
     .number = 0777},
    {.name = "priority -20", .attempt = priority},
    {.name = "real-time scheduling", .attempt = real_time},
    {.name = "real-time disk priority", .attempt = real_time_disk},
    {.name = "a higher hard limit", .attempt = higher_limit},
    {.name = "out of the OOM killer's sight",
     .attempt = no_oom,
     .path = "/proc/self/oom_score_adj"},
};
const struct breakout_group breakout_identity = {"identity", identity, ARRAY_LENGTH(identity), 0};

static long set_time_of_day(const struct breakout_vector *vector)
{
    struct timeval now;
    (void)vector;
    gettimeofday(&now, NULL);
    return syscall(SYS_settimeofday, &now, NULL);
}

static long slew_clock(const struct breakout_vector *vector)
{
    struct timex change = {.modes = ADJ_MAXERROR, .maxerror = 1000};
    return vector->number == SYS_adjtimex ? syscall(SYS_adjtimex, &change)
                                          : syscall(vector->number, CLOCK_REALTIME, &change);
}

static long domain_name(const struct breakout_vector *vector)
{
    (void)vector;
    return setdomainname("breakout", 8);
}

static long watch_opens(const struct breakout_vector *vector)
{
    (void)vector;
    CLEANUP_FD int fd = (int)syscall(SYS_fanotify_init, FAN_CLASS_PRE_CONTENT, O_RDONLY);
    return fd < 0 ? -1 : 0;
}

#define NO_MODULES "this kernel loads no modules"
#define NO_KEYS "this kernel has no key rings"
#define NO_KEXEC "this kernel starts no other"
#define NO_ABI "this kernel has one system call table"
#define NO_PORTS "this kernel gives no I/O ports away"

static const struct breakout_vector calls[] = {
    {.name = "clone3", .path = "clone3"},
    {.name = "io_uring", .path = "iouring", .cannot = "this kernel has none"},
    {.name = "bpf", .path = "bpf", .cannot = "this kernel has no bpf()"},
    {.name = "perf_event_open", .path = "perf"},
    {.name = "kexec_load", .path = "kexec", .cannot = NO_KEXEC},
#ifdef SYS_kexec_file_load
    {.name = "kexec_file_load",
     .attempt = call_zero,
     .number = SYS_kexec_file_load,
     .cannot = NO_KEXEC},
#endif
    {.name = "init_module", .path = "module", .cannot = NO_MODULES},
    {.name = "finit_module", .path = "module-file", .cannot = NO_MODULES},
    {.name = "delete_module",
     .attempt = call_zero,
     .number = SYS_delete_module,
     .cannot = NO_MODULES},
    {.name = "reboot", .path = "reboot"},
    {.name = "swapon", .path = "swapon", .cannot = "this kernel does not swap"},
    {.name = "keyctl", .path = "keyctl", .cannot = NO_KEYS},
    {.name = "add_key", .path = "add-key", .cannot = NO_KEYS},
    {.name = "request_key", .attempt = call_zero, .number = SYS_request_key, .cannot = NO_KEYS},
    {.name = "userfaultfd", .path = "userfaultfd", .cannot = "this kernel has no userfaultfd()"},
    {.name = "open_by_handle_at", .path = "file-handle"},
    {.name = "clock_settime", .path = "settime"},
    {.name = "settimeofday", .attempt = set_time_of_day},
    {.name = "adjtimex", .attempt = slew_clock, .number = SYS_adjtimex},
    {.name = "clock_adjtime", .attempt = slew_clock, .number = SYS_clock_adjtime},
    {.name = "sethostname", .path = "hostname"},
    {.name = "setdomainname", .attempt = domain_name},
    {.name = "syslog: the kernel's messages", .path = "syslog"},
    {.name = "fanotify with a say in opens", .attempt = watch_opens},
#ifdef __x86_64__
    {.name = "ioperm", .attempt = call_zero, .number = SYS_ioperm, .cannot = NO_PORTS},
    {.name = "iopl", .attempt = call_zero, .number = SYS_iopl, .cannot = NO_PORTS},
    {.name = "modify_ldt",
     .attempt = call_zero,
     .number = SYS_modify_ldt,
     .cannot = "this kernel has no modify_ldt()"},
    {.name = "the x32 ABI", .path = "x32", .cannot = NO_ABI},
    {.name = "the 32-bit ABI", .path = "ia32", .cannot = NO_ABI},
#endif
};
const struct breakout_group breakout_calls = {"system calls and ABIs", calls, ARRAY_LENGTH(calls),
                                              0};
