/* Signals are read from a descriptor in the event loop; none interrupts the program. */
#include "init/system/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "common/os/cleanup.h"

int signals_open(struct failure *why)
{
    static const int awaited[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH};
    sigset_t set;

    sigemptyset(&set);
    for (unsigned number = 0; number < ARRAY_LENGTH(awaited); number++)
        sigaddset(&set, awaited[number]);
    signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would keep waitpid(2) from working */
    signal(SIGPIPE, SIG_IGN); /* a write to a closed pipe returns EPIPE */
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return failure_errno(why, errno, "block signals");
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? failure_errno(why, errno, "signalfd") : fd;
}
