/* Starts, watches and ends children. On Linux PR_SET_PDEATHSIG ends them with this program. */
#include "qemu-harness/launcher/host/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/child_linux.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"

static void child_reset_signals(void)
{
    sigset_t none;
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_DFL); /* fails for SIGKILL, SIGSTOP and the signals of libc */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int child_set_stdio(const struct spawn *spawn)
{
    int wanted[3] = {spawn->stdin_fd, spawn->stdout_fd, spawn->stderr_fd};
    for (int i = 0; i < 3; i++) {
        int fd = wanted[i] >= 0 ? wanted[i] : open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd < 0 || dup2(fd, i) < 0)
            return -errno;
        if (fd == i) /* dup2 to itself keeps close-on-exec */
            fcntl(i, F_SETFD, 0);
    }
    return 0;
}

static int child_prepare(const struct spawn *spawn, pid_t parent, struct failure *why)
{
    if (setsid() < 0)
        return failure_errno(why, errno, "setsid");
    if (prctl(PR_SET_PDEATHSIG, spawn->death_signal) || getppid() != parent)
        return failure_set(why, ESRCH, "codev-sandbox ended meanwhile");
    child_reset_signals();
    int result = child_set_stdio(spawn);
    if (result)
        return failure_errno(why, -result, "standard input and output");
    for (unsigned i = 0; i < spawn->keep_count; i++)
        if (fcntl(spawn->keep[i], F_SETFD, 0))
            return failure_errno(why, errno, "descriptor %d", spawn->keep[i]);
    if (!spawn->prepare)
        return 0;
    result = spawn->prepare(spawn->context, why);
    /* a change of ids clears it (kernel/cred.c, commit_creds) */
    if (!result && (prctl(PR_SET_PDEATHSIG, spawn->death_signal) || getppid() != parent))
        return failure_set(why, ESRCH, "codev-sandbox ended meanwhile");
    return result;
}

/* Processes that handle a guest's bytes could leak secrets from the user's environment, so they
 * get only the paths of programs and temporary files, the language, and our own variables. The
 * broker is trusted and needs the user's settings of proxies, CAs and desktop. */
static void child_limit_environment(enum process_role role)
{
    static const char *const kept[] = {"PATH=", "HOME=", "TMPDIR=", "LANG=", "LC_", "CODEV_"};
    char **place = environ;
    if (role == PROCESS_BROKER)
        return;
    for (char **variable = environ; *variable; variable++)
        for (size_t i = 0; i < ARRAY_LENGTH(kept); i++)
            if (strncmp(*variable, kept[i], strlen(kept[i])) == 0) {
                *place++ = *variable;
                break;
            }
    *place = NULL;
}

struct start {
    enum process_role role;
    const struct spawn *spawn;
    pid_t parent;
};

static int child_run(void *argument, int *report_fd, struct failure *why)
{
    const struct start *start = argument;
    const struct spawn *spawn = start->spawn;
    int result = child_prepare(spawn, start->parent, why);
    (void)report_fd;
    if (result < 0)
        return result;
    child_limit_environment(start->role);
    if (spawn->preload)
        setenv("LD_PRELOAD", spawn->preload, 1);
    execvp(spawn->argv[0], (char *const *)spawn->argv);
    return failure_errno(why, errno, "%s", spawn->argv[0]);
}

int process_spawn(struct process_table *table, enum process_role role, const struct spawn *spawn,
                  struct failure *why)
{
    struct start start = {.role = role, .spawn = spawn, .parent = getpid()};
    pid_t pid;
    if (table->count == PROCESSES_MAX)
        return failure_set(why, EAGAIN, "more than %d processes", PROCESSES_MAX);
    int result = child_execute(&pid, child_run, &start, CHILD_NO_LIMIT, why);
    if (result < 0)
        return failure_prefix(why, result, "%s", spawn->name);
    table->entries[table->count] = (struct process){.pid = pid, .role = role, .name = spawn->name};
    return (int)table->count++;
}

/* Reaps one process if it has ended (`flags` WNOHANG: without waiting). The rest of its group is
 * killed while it is still a zombie, since another process could have its number afterwards. */
static bool process_collect(struct process *process, int flags)
{
    siginfo_t info = {0};
    if (process->ended)
        return false;
    int result = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOWAIT | flags);
    if (result && errno == ECHILD)
        return process->ended = true;
    if (result || info.si_pid != process->pid)
        return false;
    kill(-process->pid, SIGKILL);
    waitpid(process->pid, &process->status, 0);
    return process->ended = true;
}

bool process_reap(struct process_table *table)
{
    bool any = false;
    for (unsigned i = 0; i < table->count; i++)
        any |= process_collect(&table->entries[i], WNOHANG);
    return any;
}

struct process *process_find(struct process_table *table, enum process_role role)
{
    for (unsigned i = 0; i < table->count; i++)
        if (table->entries[i].role == role)
            return &table->entries[i];
    return NULL;
}

void process_describe(const struct process *process, char *out, size_t size)
{
    if (!process->ended)
        snprintf(out, size, "running");
    else if (WIFSIGNALED(process->status))
        snprintf(out, size, "signal %d (%s)", WTERMSIG(process->status),
                 strsignal(WTERMSIG(process->status)));
    else
        snprintf(out, size, "exit status %d", WEXITSTATUS(process->status));
}

static unsigned process_signal_all(struct process_table *table, int signal_number)
{
    unsigned alive = 0;
    for (unsigned i = 0; i < table->count; i++) {
        if (table->entries[i].ended)
            continue;
        alive++;
        kill(-table->entries[i].pid, signal_number);
    }
    return alive;
}

void process_stop_all(struct process_table *table, int64_t grace_ms)
{
    int64_t deadline = io_monotonic_ns() + grace_ms * MILLISECONDS;
    process_reap(table);
    unsigned alive = grace_ms > 0 ? process_signal_all(table, SIGTERM) : 1;
    while (alive > 0 && io_monotonic_ns() < deadline) {
        poll(NULL, 0, 5);
        process_reap(table);
        alive = process_signal_all(table, 0);
    }
    process_signal_all(table, SIGKILL);
    for (unsigned i = 0; i < table->count; i++)
        while (!table->entries[i].ended)
            process_collect(&table->entries[i], 0);
}

void process_close_inherited(void)
{
    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    long limit = sysconf(_SC_OPEN_MAX); /* before Linux 5.11 */
    for (int fd = 3; fd < (limit > 0 && limit < 65536 ? limit : 65536); fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}
