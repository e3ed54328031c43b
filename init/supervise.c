/* The event loop of PID 1. phase.c decides what the server's end means.
 *
 * One poll(2) over a table of nine descriptors that is filled from the state each time: a
 * descriptor without interest is not in it, so nothing has to be re-armed, no event can refer to an
 * object that is gone, and the end of a stream that is not read cannot make the loop spin. The
 * clock is read once per wake-up. Timers are a table of points in time; the next one limits the
 * wait.
 */
#include "init/supervise.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/command.h"
#include "init/host/events.h"
#include "init/host_time.h"
#include "init/phase.h"
#include "init/shutdown.h"
#include "init/wsl/wsl_link.h"

#define PROBE_WAIT_FIRST (2 * MILLISECONDS)
#define PROBE_WAIT_MOST (25 * MILLISECONDS)

/* The poll table. */
enum source {
    SOURCE_SIGNALS,
    SOURCE_CONTROL,
    SOURCE_CONTROL_OUT,
    SOURCE_OUTSIDE,
    SOURCE_FIREWALL,
    SOURCE_SERVER, /* SERVER_IO_POLLS entries from here */
    SOURCE_COUNT = SOURCE_SERVER + SERVER_IO_POLLS
};

void supervise_begin(struct sandbox *sandbox)
{
    const int64_t now = io_monotonic_ns();

    if (sandbox->place == PLACE_MACHINE)
        sandbox->timers[TIMER_TIME] = now;
    if (sandbox->config.server.port == 0) {
        phase_set(sandbox, PHASE_RUNNING, 0);
        return;
    }
    phase_set(sandbox, PHASE_STARTING, 0);
    sandbox->probe_wait_ns = PROBE_WAIT_FIRST;
    sandbox->timers[TIMER_READY_PROBE] = now;
    sandbox->timers[TIMER_READY_LIMIT] =
        now + sandbox->config.server.ready_timeout_ms * MILLISECONDS;
}

/* ---- processes ---- */

static void agent_ended(struct sandbox *sandbox, int wait_status, int64_t now)
{
    struct failure why;
    const char *how = WIFSIGNALED(wait_status) ? "signal" : "exit status";
    int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    int64_t wait = restart_wait(&sandbox->relay_restarts, now);

    sandbox->relay.pid = 0;
    failure_set(&why, 0, "codev-agent ended (%s %d) and is started again", how, number);
    if (wait < 0) {
        failure_set(&why, 0, "codev-agent ended (%s %d) after %d restarts within %lld s", how,
                    number, RESTARTS_MAX, (long long)(RESTART_WINDOW_NS / SECONDS));
        sandbox_fail(sandbox, STAGE_RELAY, &why);
    }
    (void)event_warning(&sandbox->control, why.text);
    sandbox->timers[TIMER_AGENT_RESTART] = now + wait;
}

/* Reaps every process of the sandbox that ended: our children and all orphans. */
static void reap(struct sandbox *sandbox, int64_t now)
{
    int wait_status;
    pid_t pid;

    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        if (pid == sandbox->server.pid)
            phase_server_ended(sandbox, wait_status, now);
        else if (pid == sandbox->relay.pid)
            agent_ended(sandbox, wait_status, now);
    }
}

static void handle_signals(struct sandbox *sandbox, int64_t now)
{
    struct signalfd_siginfo info;

    while (read(sandbox->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo != SIGCHLD)
            (void)server_signal(&sandbox->server, &sandbox->io, (int)info.ssi_signo);
    reap(sandbox, now);
}

/* ---- control channel and firewall ---- */

static void handle_control(struct sandbox *sandbox)
{
    char *line;
    size_t length;
    int result = control_receive(&sandbox->control);

    while (result == 0 && (result = control_next_line(&sandbox->control, &line, &length)) > 0) {
        command_run(sandbox, line, length);
        result = 0;
    }
    if (result == -EMSGSIZE) /* the rest of a line that is too long is not a command */
        control_end(&sandbox->control);
}

/* WSL: a report of the process outside about the outer relay. */
static void handle_outside(struct sandbox *sandbox)
{
    struct failure why;
    int result = wsl_link_take_report(sandbox->outside_fd, &why);

    if (result < 0)
        sandbox_fail(sandbox, STAGE_RELAY, &why);
    if (result > 0)
        (void)event_warning(&sandbox->control, why.text);
}

static void handle_firewall(struct sandbox *sandbox)
{
    struct failure why;
    enum firewall_event event = FIREWALL_LOST;

    (void)nft_firewall_check(&sandbox->firewall, &event, &why);
    switch (event) {
    case FIREWALL_INTACT:
        break;
    case FIREWALL_RESTORED:
        (void)event_firewall(&sandbox->control, firewall_event_names[event]);
        break;
    case FIREWALL_LOST:
        (void)cgroup_kill(sandbox->cgroups.server_fd); /* first: nothing may run without it */
        (void)event_firewall(&sandbox->control, firewall_event_names[event]);
        sandbox_fail(sandbox, STAGE_FIREWALL, &why);
    case FIREWALL_EVENT_COUNT:
        break;
    }
}

/* ---- timers ---- */

static void expire_probe(struct sandbox *sandbox, int64_t now)
{
    if (server_port_accepts(sandbox->config.server.port)) {
        phase_set(sandbox, PHASE_RUNNING, 0);
        return;
    }
    sandbox->timers[TIMER_READY_PROBE] = now + sandbox->probe_wait_ns;
    sandbox->probe_wait_ns *= 2;
    if (sandbox->probe_wait_ns > PROBE_WAIT_MOST)
        sandbox->probe_wait_ns = PROBE_WAIT_MOST;
}

static void expire_ready(struct sandbox *sandbox, int64_t now)
{
    struct failure why;

    (void)now;
    failure_set(&why, 0, "port %u does not accept after %lld ms", sandbox->config.server.port,
                (long long)sandbox->config.server.ready_timeout_ms);
    sandbox_fail(sandbox, STAGE_SERVER, &why);
}

static void expire_agent(struct sandbox *sandbox, int64_t now)
{
    struct failure why;

    (void)now;
    if (relay_start(&sandbox->relay, &sandbox->config, sandbox->cgroups.relay_fd, &why) < 0)
        sandbox_fail(sandbox, STAGE_RELAY, &why);
}

static void (*const timer_expired[])(struct sandbox *sandbox, int64_t now) = {
    [TIMER_READY_PROBE] = expire_probe,   [TIMER_READY_LIMIT] = expire_ready,
    [TIMER_AGENT_RESTART] = expire_agent, [TIMER_PHASE] = phase_expire,
    [TIMER_TIME] = host_time_ask,
};
static_assert(ARRAY_LENGTH(timer_expired) == TIMER_COUNT, "a function for every timer");

static void run_timers(struct sandbox *sandbox, int64_t now)
{
    for (int timer = 0; timer < TIMER_COUNT; timer++) {
        if (sandbox->timers[timer] == 0 || sandbox->timers[timer] > now)
            continue;
        sandbox->timers[timer] = 0;
        timer_expired[timer](sandbox, now);
    }
}

/* Milliseconds to the next timer, rounded up; -1 without one. */
static int timers_wait(const struct sandbox *sandbox, int64_t now)
{
    int64_t next = 0;

    for (int timer = 0; timer < TIMER_COUNT; timer++)
        if (sandbox->timers[timer] != 0 && (next == 0 || sandbox->timers[timer] < next))
            next = sandbox->timers[timer];
    return next == 0 ? -1 : io_timeout_ms(next, now);
}

/* ---- the loop ---- */

static void prepare(const struct sandbox *sandbox, struct pollfd polls[SOURCE_COUNT])
{
    polls[SOURCE_SIGNALS] = (struct pollfd){.fd = sandbox->signal_fd, .events = POLLIN};
    polls[SOURCE_CONTROL] = (struct pollfd){.fd = sandbox->control.fd, .events = POLLIN};
    polls[SOURCE_CONTROL_OUT] = (struct pollfd){.fd = -1, .events = POLLOUT};
    if (control_wants_write(&sandbox->control))
        polls[SOURCE_CONTROL_OUT].fd = control_write_fd(&sandbox->control);
    polls[SOURCE_OUTSIDE] = (struct pollfd){.fd = sandbox->outside_fd, .events = POLLIN};
    polls[SOURCE_FIREWALL] =
        (struct pollfd){.fd = nft_firewall_watch_fd(&sandbox->firewall), .events = POLLIN};
    server_io_prepare(&sandbox->io, &sandbox->control, &polls[SOURCE_SERVER]);
}

static void turn_loop(struct sandbox *sandbox)
{
    struct pollfd polls[SOURCE_COUNT];

    (void)control_flush(&sandbox->control);
    if (sandbox->control.ended)
        phase_shutdown(sandbox, SHUTDOWN_GRACE_MS);
    prepare(sandbox, polls);
    if (poll(polls, SOURCE_COUNT, timers_wait(sandbox, io_monotonic_ns())) < 0)
        return; /* EINTR only */
    const int64_t now = io_monotonic_ns();
    phase_extend_drain(sandbox, now);
    if (polls[SOURCE_FIREWALL].revents != 0)
        handle_firewall(sandbox);
    if (polls[SOURCE_SIGNALS].revents != 0)
        handle_signals(sandbox, now);
    if (polls[SOURCE_CONTROL].revents & (POLLIN | POLLHUP | POLLERR))
        handle_control(sandbox);
    if (polls[SOURCE_OUTSIDE].revents != 0)
        handle_outside(sandbox);
    server_io_run(&sandbox->io, &sandbox->control, &polls[SOURCE_SERVER]);
    run_timers(sandbox, now);
    phase_check_drain(sandbox, now);
}

bool supervise_until_ready(struct sandbox *sandbox)
{
    while (sandbox->phase != PHASE_RUNNING && sandbox->phase != PHASE_ENDED)
        turn_loop(sandbox);
    return sandbox->phase == PHASE_RUNNING;
}

void supervise_until_end(struct sandbox *sandbox)
{
    while (sandbox->phase != PHASE_ENDED)
        turn_loop(sandbox);
}
