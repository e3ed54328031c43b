/* prctl(2), signalfd(2) and resource limits behind process.h. */
#include "host-broker/base/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/io.h"

void process_harden(void)
{
#ifndef __SANITIZE_ADDRESS__ /* the leak checker traces its own process */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
    struct rlimit none = {0, 0}, files;
    (void)setrlimit(RLIMIT_CORE, &none);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    signal(SIGPIPE, SIG_IGN);
}

int process_open_requests(struct failure *why)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? failure_errno(why, errno, "receive signals") : fd;
}

enum process_request process_read_request(int fd)
{
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return PROCESS_CARRY_ON;
    return info.ssi_signo == SIGHUP ? PROCESS_RELOAD : PROCESS_END;
}

bool process_input_is_lifeline(void)
{
    struct stat info;
    return fstat(STDIN_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

bool process_input_ended(void)
{
    char dropped[4096];
    ssize_t length = read(STDIN_FILENO, dropped, sizeof(dropped));
    return length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
}
