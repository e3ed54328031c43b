/* The process outside the sandbox in WSL.
 *
 * clone(2) makes the new namespaces together with the child: the child is in them from its first
 * instruction, and this process stays in the distribution's. Both hold the descriptors of the
 * control channel, but only PID 1 uses them, until it is dead and has reported nothing.
 *
 * PID 1 cannot outlive this process: it first asks for SIGKILL at our death, and then checks that
 * we are still alive by the socket between us, whose other end would be closed.
 */
#include "init/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/child_linux.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/host/control_stdio.h"
#include "init/host/events.h"
#include "init/outside_serve.h"
#include "init/relay/relay_folder.h"
#include "init/stage.h"
#include "init/system/console.h"
#include "init/system/signals.h"
#include "init/wsl/wsl_cgroups.h"
#include "init/wsl/wsl_progress.h"

#define SAY_LIMIT_MS 2000
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

static struct outside outside = {.link = -1};

/* ---- the start ---- */

/* The kind of namespace that the kernel lacks, or NULL. */
static const char *missing_namespace(void)
{
    static const char *const kinds[][2] = {
        {"/proc/self/ns/net", "network namespaces (CONFIG_NET_NS)"},
        {"/proc/self/ns/pid", "PID namespaces (CONFIG_PID_NS)"},
        {"/proc/self/ns/ipc", "IPC namespaces (CONFIG_IPC_NS)"},
        {"/proc/self/ns/uts", "UTS namespaces (CONFIG_UTS_NS)"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (access(kinds[i][0], F_OK) < 0)
            return kinds[i][1];
    return NULL;
}

static int namespace_failure(int error, struct failure *why)
{
    const char *missing = missing_namespace();

    if (missing)
        return failure_set(why, error, "this kernel has no %s", missing);
    if (error == EPERM)
        return failure_set(why, EPERM, "CAP_SYS_ADMIN is missing: new namespaces are refused");
    return failure_errno(why, error, "new namespaces for the sandbox");
}

static int check_rights(struct failure *why)
{
    if (geteuid() != 0)
        return failure_set(why, EPERM, "it must be started as root (wsl -u root --exec)");
    return 0;
}

static _Noreturn void become_inside(struct sandbox *sandbox, int link, int other_end,
                                    const struct relay_folder *folder, void (*inside)(void))
{
    struct pollfd gone = {.fd = link};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(other_end);
    close(folder->out_fd);
    close(sandbox->signal_fd);
    if (poll(&gone, 1, 0) != 0) /* POLLHUP: it died before prctl took effect */
        _exit(1);
    sandbox->outside_fd = link;
    sandbox->relay.side = RELAY_SIDE_INSIDE;
    sandbox->relay.folder_listener_fd = folder->in_fd;
    sandbox->relay.folder_namespace_fd = folder->namespace_fd;
    inside();
    _exit(1);
}

/* Starts PID 1. Its process id in this namespace, or a negative errno. */
static pid_t start_inside(struct sandbox *sandbox, void (*inside)(void), struct failure *why)
{
    struct account owner;
    struct relay_folder folder = {.namespace_fd = -1, .out_fd = -1, .in_fd = -1};
    int link[2];
    int result = account_find(RELAY_ACCOUNT, &owner, why);

    if (result == 0)
        result = relay_folder_make(&folder, &owner, why);
    if (result < 0)
        return result;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) < 0)
        return failure_errno(why, errno, "make a pair of sockets");
    pid_t child = (pid_t)syscall(SYS_clone, NAMESPACES | SIGCHLD, 0, 0, 0, 0);
    if (child < 0)
        return namespace_failure(errno, why);
    if (child == 0)
        become_inside(sandbox, link[1], link[0], &folder, inside);
    close(link[1]);
    close(folder.in_fd);
    outside = (struct outside){.link = link[0],
                               .relay = {.config_fd = -1,
                                         .binary_fd = -1,
                                         .side = RELAY_SIDE_OUTSIDE,
                                         .folder_listener_fd = folder.out_fd,
                                         .folder_namespace_fd = folder.namespace_fd}};
    return child;
}

/* ---- waiting ---- */

/* True when PID 1 has ended, with its status. */
static bool reap(pid_t inside, int *status)
{
    int one;
    pid_t pid;

    while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
        if (pid == inside) {
            *status = one;
            return true;
        }
        if (pid == outside.relay.pid)
            outside_agent_ended(&outside, one);
    }
    return false;
}

static void pass_signals_on(int signal_fd, pid_t inside)
{
    struct signalfd_siginfo info;

    while (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo != SIGCHLD)
            kill(inside, (int)info.ssi_signo);
}

static int time_to_restart(void)
{
    return outside.restart_at == 0 ? -1 : io_timeout_ms(outside.restart_at, io_monotonic_ns());
}

/* PID 1's end; its status as waitpid(2) gives it. */
static int await_inside(int signal_fd, pid_t inside)
{
    struct pollfd polls[] = {{.fd = signal_fd, .events = POLLIN},
                             {.fd = outside.link, .events = POLLIN}};
    int status;

    for (;;) {
        outside_restart(&outside);
        if (poll(polls, ARRAY_LENGTH(polls), time_to_restart()) < 0)
            continue;
        pass_signals_on(signal_fd, inside);
        if (reap(inside, &status))
            return status;
        if (polls[1].revents != 0 && outside_serve(&outside) < 0)
            polls[1].fd = -1; /* PID 1 is about to end */
    }
}

/* ---- the end ---- */

/* Sends what is queued, within SAY_LIMIT_MS. */
static void say_all(struct control *control)
{
    const int64_t deadline = io_monotonic_ns() + SAY_LIMIT_MS * MILLISECONDS;

    while (control_flush(control) == 0 && control_wants_write(control)) {
        if (!io_wait(control_write_fd(control), POLLOUT, deadline))
            return;
    }
}

/* PID 1 died and reported nothing. It may have left a line partly written. */
static void report_death(struct control *control, int status)
{
    struct failure why;
    const uint32_t stages = wsl_progress_read()->stages;
    uint32_t stage = stages < STAGE_COUNT ? stages : STAGE_SERVER;

    stage = stage == STAGE_CLOCK ? STAGE_HOSTNAME : stage; /* WSL has no stage `clock` */
    failure_set(&why, 0, "the sandbox's PID 1 ended (%s %d), and all processes with it",
                WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    control_break_line(control);
    (void)event_failed(control, stage_names[stage], why.text);
    say_all(control);
}

static int end(struct sandbox *sandbox, int status)
{
    bool said = WIFEXITED(status) && WEXITSTATUS(status) <= 1;

    if (!said && !wsl_progress_read()->ended)
        report_death(&sandbox->control, status);
    if (outside.relay.pid > 0)
        child_end(outside.relay.pid);
    wsl_cgroups_remove(sandbox->own_cgroup_fd, wsl_progress_read()->group);
    return said ? WEXITSTATUS(status) : 1;
}

/* Reports a failure before there is a PID 1. */
static int refuse(struct control *control, const struct failure *why)
{
    (void)event_hello(control);
    (void)event_failed(control, stage_names[STAGE_BASE], why->text);
    say_all(control);
    return 1;
}

/* Closes all but the standard descriptors and moves the two of the control channel. */
static int prepare(struct sandbox *sandbox, struct failure *why)
{
    syscall(SYS_close_range, 3, ~0u, 0);
    console_is_stderr();
    int result = control_attach_stdio(&sandbox->control, why);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (result < 0)
        return result;
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return failure_errno(why, errno, "open /dev/null");
    if (chdir("/") < 0)
        return failure_errno(why, errno, "enter /");
    umask(022); /* not the inherited one */
    (void)io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0, "-1000");
    sandbox->signal_fd = signals_open(why);
    return sandbox->signal_fd < 0 ? sandbox->signal_fd : wsl_progress_open(why);
}

int outside_run(struct sandbox *sandbox, void (*inside)(void))
{
    struct failure why;
    int result = prepare(sandbox, &why);
    pid_t child = result;

    if (result == 0)
        result = check_rights(&why);
    if (result == 0) {
        sandbox->own_cgroup_fd = wsl_cgroups_find();
        child = start_inside(sandbox, inside, &why);
    }
    if (result < 0 || child < 0)
        result = refuse(&sandbox->control, &why);
    else
        result = end(sandbox, await_inside(sandbox->signal_fd, child));
    control_restore_terminal();
    return result;
}
