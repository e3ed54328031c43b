/* Drops the relay's remaining rights: the list of allowed system calls, and process settings.
 *
 * A call that is not on the list ends the process instead of failing with an error. The relay is a
 * single event loop over a dozen calls: another call means a bug or foreign code in a process that
 * holds the token. codev-init starts a new relay, and only the streams in flight break. The signal
 * (TRAP) lets a handler report the call's number before the end; when the handler cannot run, the
 * signal ends the process anyway.
 */
#include "agent/confine.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/seccomp_filter_linux.h"

#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_WITHOUT_SECCOMP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONFINE_WITHOUT_SECCOMP 1
#endif
#endif

#define EXIT_REFUSED_CALL 70 /* EX_SOFTWARE */

int confine_process(struct failure *why)
{
    struct rlimit no_core = {0, 0};
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return failure_errno(why, errno, "PR_SET_DUMPABLE");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return failure_errno(why, errno, "PR_SET_PDEATHSIG");
    if (setrlimit(RLIMIT_CORE, &no_core) < 0)
        return failure_errno(why, errno, "RLIMIT_CORE");
    return 0;
}

#ifndef CONFINE_WITHOUT_SECCOMP

static const struct seccomp_rule allowed_calls[] = {
/* the event loop and its clock (most often answered by the vDSO) */
#ifdef SYS_epoll_wait
    RULE(epoll_wait, ALLOW),
#endif
    RULE(epoll_pwait, ALLOW),
    RULE(epoll_ctl, ALLOW),
    RULE(clock_gettime, ALLOW),
    /* recv and send; read, for the configuration pipe; write, for a last message */
    RULE(recvfrom, ALLOW),
    RULE(sendto, ALLOW),
    RULE(read, ALLOW),
    RULE(write, ALLOW),
    /* connections of clients */
    RULE(accept4, ALLOW),
    RULE(close, ALLOW),
    RULE(shutdown, ALLOW),
    RULE(setsockopt, ALLOW),
    RULE(getsockopt, ALLOW),
    /* connections to the four families that an address can have. No bind and no listen: every
     * listener is inherited */
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_UNIX)),
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_INET)),
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_INET6)),
    RULE(socket, ALLOW, ARGUMENT_IS(0, AF_VSOCK)),
    RULE(connect, ALLOW),
    RULE(pread64, ALLOW), /* the table of routes, for tcp:gateway */
    /* returns the pages of a buffer; no other advice, and no mmap, brk or mprotect at all */
    RULE(madvise, ALLOW, ARGUMENT_IS(2, MADV_DONTNEED)),
    /* exit, and the return from the signal handler below */
    RULE(exit_group, ALLOW),
    RULE(rt_sigreturn, ALLOW),
};

static void refused_call(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)context;
    static char text[] = "codev-agent: system call 0000 is not on the list, ended\n";
    int number = info->si_syscall;
    for (char *digit = strchr(text, '0') + 3; *digit == '0' && number > 0; digit--, number /= 10)
        *digit = (char)('0' + number % 10);
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ignored;
    _exit(EXIT_REFUSED_CALL);
}

int confine_system_calls(struct failure *why)
{
    struct sigaction action = {.sa_sigaction = refused_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSYS, &action, NULL) < 0)
        return failure_errno(why, errno, "handler for refused system calls");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return failure_errno(why, errno, "PR_SET_NO_NEW_PRIVS");
    int result = seccomp_filter_load_table(allowed_calls, ARRAY_LENGTH(allowed_calls), TRAP, KILL);
    return result < 0 ? failure_errno(why, -result, "seccomp") : 0;
}

#else

int confine_system_calls(struct failure *why)
{
    (void)why;
    return 0;
}

#endif
