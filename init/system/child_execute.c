/* The child reports over a pipe that execve(2) closes: end of file without a text means that the
 * program runs. The wait has a limit, since a program may lie on a file system that the host serves
 * and that hangs.
 */
#include "init/system/child_execute.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define EXIT_NOT_EXECUTED 127

static int await_execution(int fd, int limit_ms, struct failure *why)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready;

    do
        ready = poll(&wait, 1, limit_ms);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return failure_set(why, ETIMEDOUT, "the program was not executed within %d s",
                           limit_ms / 1000);
    ssize_t got = io_read_full(fd, why->text, sizeof(why->text));
    if (got == 0)
        return 0;
    why->text[sizeof(why->text) - 1] = '\0';
    return -ECHILD;
}

int child_execute(pid_t *pid, executing_task *task, void *argument, int limit_ms,
                  struct failure *why)
{
    int report[2];

    if (pipe2(report, O_CLOEXEC) < 0)
        return failure_errno(why, errno, "make a pipe");
    CLEANUP_FD int reading = report[0];
    pid_t child = fork();
    if (child < 0) {
        close(report[1]);
        return failure_errno(why, errno, "fork");
    }
    if (child == 0) {
        task(argument, &report[1], why);
        (void)io_write_full(report[1], why->text, sizeof(why->text));
        _exit(EXIT_NOT_EXECUTED);
    }
    close(report[1]);
    int result = await_execution(reading, limit_ms, why);
    if (result < 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, result == -ETIMEDOUT ? WNOHANG : 0);
        return result;
    }
    *pid = child;
    return 0;
}
