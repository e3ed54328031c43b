/* The end of a short-lived child, with a bound: PID 1 waits for nobody for ever. */
#include "init/system/child_wait.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"

#define KILLED_TIMEOUT_MS 1000

bool child_wait(pid_t child, int timeout_ms)
{
    CLEANUP_FD int process = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd ended = {.fd = process, .events = POLLIN};

    if (process >= 0 && poll(&ended, 1, timeout_ms) <= 0)
        return false;
    return waitpid(child, NULL, 0) == child;
}

void child_end(pid_t child)
{
    kill(child, SIGKILL);
    (void)child_wait(child, KILLED_TIMEOUT_MS);
}
