/* Reads signals by signalfd(2). */
#include "qemu-harness/launcher/run/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int watched_signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};

int signals_watch(struct sandbox *sandbox, struct failure *why)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(watched_signals) / sizeof(watched_signals[0]); i++)
        sigaddset(&set, watched_signals[i]);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* if it were inherited as ignored, no child could be waited for */
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return failure_errno(why, errno, "sigprocmask");
    sandbox->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return sandbox->signals < 0 ? failure_errno(why, errno, "signalfd") : 0;
}

/* A first signal asks for an orderly end, a second one ends the sandbox at once. */
static void handle_end(struct sandbox *sandbox, int signal_number)
{
    int status = 128 + signal_number;
    sandbox->terminated = true;
    if (sandbox->first_signal == 0 && sandbox->phase < PHASE_OVER) {
        sandbox->first_signal = signal_number;
        sandbox_request_stop(sandbox, status);
        return;
    }
    if (sandbox->phase != PHASE_OVER)
        sandbox->exit_status = status;
    sandbox->phase = PHASE_DONE;
}

void signals_handle(struct sandbox *sandbox)
{
    struct signalfd_siginfo info;
    unsigned rows, columns;
    while (read(sandbox->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        switch (info.ssi_signo) {
        case SIGCHLD:
            process_reap(&sandbox->processes);
            break;
        case SIGWINCH:
            if (sandbox->config_sent && sandbox->terminal.present && terminal_size(&rows, &columns))
                control_send_resize(&sandbox->control, rows, columns);
            break;
        default:
            handle_end(sandbox, (int)info.ssi_signo);
            break;
        }
    }
}
