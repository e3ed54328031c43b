/* The child writes a struct report into a close-on-exec pipe when its task fails and nothing
 * otherwise: the end of the stream means that it executed its program, or ended. */
#include "common/os/child_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define KILLED_LIMIT_MS 1000
#define EXIT_FAILED 127

struct report {
    int result; /* a negative errno */
    struct failure why;
};

static int64_t deadline_of(int limit_ms)
{
    return limit_ms < 0 ? NEVER : io_monotonic_ns() + limit_ms * MILLISECONDS;
}

static _Noreturn void child_main(child_task *task, void *argument, int report_fd)
{
    struct report report = {.why = {""}};

    report.result = task(argument, &report_fd, &report.why);
    if (report.result == 0)
        _exit(0);
    (void)io_write_full(report_fd, &report, sizeof(report));
    _exit(EXIT_FAILED);
}

/* The child's pid; `reading` and `writing` are the ends of the pipe. */
static pid_t start(child_task *task, void *argument, int flags, int *reading, int *writing,
                   struct failure *why)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return failure_errno(why, errno, "make a pipe");
    *reading = ends[0];
    *writing = ends[1];
    /* without CLONE_VM the child goes on with a copy of the memory, as after fork(2) */
    pid_t child = flags == 0 ? fork() : (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (child < 0)
        return failure_errno(why, errno, "fork");
    if (child == 0)
        child_main(task, argument, *writing);
    return child;
}

/* 0 when the child reported nothing. */
static int read_report(int reading, struct failure *why)
{
    struct report report;

    if (io_read_full(reading, &report, sizeof(report)) != (ssize_t)sizeof(report))
        return 0;
    report.why.text[sizeof(report.why.text) - 1] = '\0';
    if (why)
        *why = report.why;
    return report.result < 0 ? report.result : -ECHILD;
}

int child_execute(pid_t *pid, child_task *task, void *argument, int limit_ms, struct failure *why)
{
    CLEANUP_FD int reading = -1;
    CLEANUP_FD int writing = -1;
    pid_t child = start(task, argument, 0, &reading, &writing, why);

    if (child < 0)
        return child;
    fd_close(&writing);
    if (!io_wait(reading, POLLIN, deadline_of(limit_ms))) {
        kill(child, SIGKILL);
        waitpid(child, NULL, WNOHANG);
        return failure_set(why, ETIMEDOUT, "the program was not executed within %d s",
                           limit_ms / 1000);
    }
    int result = read_report(reading, why);
    if (result < 0)
        waitpid(child, NULL, 0);
    else
        *pid = child;
    return result;
}

int child_work(child_task *task, void *argument, int flags, int limit_ms, struct failure *why)
{
    CLEANUP_FD int reading = -1;
    CLEANUP_FD int writing = -1; /* with CLONE_FILES the child's too: open until its end */
    int status = 0;
    pid_t child = start(task, argument, flags, &reading, &writing, why);

    if (child < 0)
        return child;
    if (!child_wait(child, limit_ms, &status)) {
        child_end(child);
        return failure_set(why, ETIMEDOUT, "it takes longer than %d s", limit_ms / 1000);
    }
    fd_close(&writing);
    int result = read_report(reading, why);
    if (result == 0 && status != 0)
        return failure_set(why, ECHILD, "the child process died (%s %d)",
                           WIFSIGNALED(status) ? "signal" : "exit status",
                           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return result;
}

bool child_wait(pid_t child, int limit_ms, int *status)
{
    CLEANUP_FD int process = (int)syscall(SYS_pidfd_open, child, 0);

    if (process >= 0 && !io_wait(process, POLLIN, deadline_of(limit_ms)))
        return false;
    return waitpid(child, status, 0) == child;
}

void child_end(pid_t child)
{
    kill(child, SIGKILL);
    (void)child_wait(child, KILLED_LIMIT_MS, NULL);
}
