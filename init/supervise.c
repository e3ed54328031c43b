/* The event loop: see supervise.h; the phases stand in sandbox.h.
 *
 * One poll(2) over a table of nine descriptors that is filled anew from the state each time: what has
 * no interest is not in it, so nothing has to be re-armed, no event can meet an object that is gone, and
 * the end of a stream that nobody reads cannot make the loop spin. The clock is read once per wake-up.
 * Timers are a table of points in time; the next one bounds the wait.
 *
 * The end of the server (design, section 4): its leader's end begins the draining. Others of its group
 * that still hold its output get DRAIN_LIMIT, then they are killed, whatever they have still to say: one that
 * says something without end would keep the session for ever. What was written by then is all there is, so a
 * host that is slow to take it may have the time where nothing may be lost (`pipe`, `tty`), unless the end was
 * asked for (`hurry`).
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
#include "init/shutdown.h"
#include "init/wsl/wsl_link.h"

#define MILLISECOND 1000000ll
#define DRAIN_LIMIT (500 * MILLISECOND)
#define PROBE_WAIT_FIRST (2 * MILLISECOND)
#define PROBE_WAIT_MOST (25 * MILLISECOND)
#define WAIT_STATUS_KILLED                                                                         \
    SIGKILL /* what waitpid(2) would give: for a leader that cannot be reaped */

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

/* ---- phases ---- */

static bool server_is_alive(const struct sandbox *sandbox)
{
    return sandbox->phase >= PHASE_STARTING && sandbox->phase <= PHASE_ENDING;
}

static void set_phase(struct sandbox *sandbox, enum phase phase, int64_t timer)
{
    sandbox->phase = phase;
    sandbox->timers[TIMER_PHASE] = timer;
    if (phase != PHASE_STARTING)
        sandbox->timers[TIMER_READY_PROBE] = sandbox->timers[TIMER_READY_LIMIT] = 0;
}

static void kill_server(struct sandbox *sandbox, int64_t now)
{
    if (cgroup_kill(sandbox->cgroups.server_fd) < 0)
        (void)server_signal(&sandbox->server, &sandbox->io, SIGKILL);
    set_phase(sandbox, PHASE_KILLED, now + DRAIN_LIMIT);
}

void supervise_begin(struct sandbox *sandbox)
{
    const int64_t now = io_monotonic_ns();

    if (sandbox->config.server.port == 0) {
        set_phase(sandbox, PHASE_RUNNING, 0);
        return;
    }
    set_phase(sandbox, PHASE_STARTING, 0);
    sandbox->probe_wait_ns = PROBE_WAIT_FIRST;
    sandbox->timers[TIMER_READY_PROBE] = now;
    sandbox->timers[TIMER_READY_LIMIT] =
        now + sandbox->config.server.ready_timeout_ms * MILLISECOND;
}

void supervise_shutdown(struct sandbox *sandbox, int64_t grace_ms)
{
    const int64_t end = io_monotonic_ns() + grace_ms * MILLISECOND;

    sandbox->hurry = true;
    if (sandbox->phase == PHASE_ENDING && end < sandbox->timers[TIMER_PHASE])
        sandbox->timers[TIMER_PHASE] = end;
    if (sandbox->phase != PHASE_STARTING && sandbox->phase != PHASE_RUNNING)
        return;
    (void)server_signal(&sandbox->server, &sandbox->io, SIGTERM);
    (void)server_signal(&sandbox->server, &sandbox->io,
                        SIGCONT);                  /* one that is stopped hears it too */
    if (sandbox->config.server.stdio == STDIO_TTY) /* interactive shells ignore TERM */
        (void)server_signal(&sandbox->server, &sandbox->io, SIGHUP);
    set_phase(sandbox, PHASE_ENDING, end);
}

/* The drain is over when nothing can write any more and all was handed on. */
static void check_drain(struct sandbox *sandbox, int64_t now)
{
    if (sandbox->phase == PHASE_DRAINING && server_io_drained(&sandbox->io))
        kill_server(sandbox, now);
    if (sandbox->phase == PHASE_KILLED && sandbox->server.ended &&
        server_io_drained(&sandbox->io) && control_output_free(&sandbox->control) &&
        !cgroup_populated(sandbox->cgroups.server_fd))
        set_phase(sandbox, PHASE_ENDED, 0);
}

static void expire_phase(struct sandbox *sandbox, int64_t now)
{
    const bool lossless =
        sandbox->io.mode != STDIO_LOG && !sandbox->hurry && !sandbox->control.ended;

    if (sandbox->phase == PHASE_KILLED && lossless &&
        server_io_waits_for_host(&sandbox->io, &sandbox->control)) {
        sandbox->timers[TIMER_PHASE] = now + DRAIN_LIMIT;
    } else if (sandbox->phase == PHASE_KILLED) {
        if (!sandbox->server.ended)
            sandbox->server.wait_status = WAIT_STATUS_KILLED;
        server_io_give_up(&sandbox->io, &sandbox->control);
        set_phase(sandbox, PHASE_ENDED, 0);
    } else {
        kill_server(sandbox, now);
    }
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
                    number, RESTARTS_MAX, (long long)(RESTART_WINDOW_NS / 1000 / MILLISECOND));
        sandbox_fail(sandbox, STAGE_RELAY, &why);
    }
    (void)event_warning(&sandbox->control, why.text);
    sandbox->timers[TIMER_AGENT_RESTART] = now + wait;
}

static void server_ended(struct sandbox *sandbox, int wait_status, int64_t now)
{
    sandbox->server.ended = true;
    sandbox->server.wait_status = wait_status;
    if (server_is_alive(sandbox))
        set_phase(sandbox, PHASE_DRAINING, now + DRAIN_LIMIT);
}

/* Every process of the sandbox ends here: those we started, and all orphans. */
static void reap(struct sandbox *sandbox, int64_t now)
{
    int wait_status;
    pid_t pid;

    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        if (pid == sandbox->server.pid)
            server_ended(sandbox, wait_status, now);
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

int supervise_open_signals(struct sandbox *sandbox, struct failure *why)
{
    static const int awaited[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH};
    sigset_t set;

    sigemptyset(&set);
    for (unsigned number = 0; number < ARRAY_LENGTH(awaited); number++)
        sigaddset(&set, awaited[number]);
    signal(SIGCHLD,
           SIG_DFL); /* whoever started us may have ignored it: then none could be reaped */
    signal(SIGPIPE, SIG_IGN); /* a write to what is gone is an error like others */
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return failure_errno(why, errno, "block signals");
    sandbox->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return sandbox->signal_fd < 0 ? failure_errno(why, errno, "signalfd") : 0;
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
    if (result ==
        -EMSGSIZE) /* what follows the beginning of a line that is too long makes no sense */
        control_end(&sandbox->control);
}

/* WSL: what the process outside has to say of its agent. Its own end would have been ours too. */
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
        (void)cgroup_kill(sandbox->cgroups.server_fd); /* first of all: nothing runs without it */
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
        set_phase(sandbox, PHASE_RUNNING, 0);
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
    [TIMER_READY_PROBE] = expire_probe,
    [TIMER_READY_LIMIT] = expire_ready,
    [TIMER_AGENT_RESTART] = expire_agent,
    [TIMER_PHASE] = expire_phase,
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
    if (next == 0)
        return -1;
    return next <= now ? 0 : (int)((next - now + MILLISECOND - 1) / MILLISECOND);
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
        supervise_shutdown(sandbox, SHUTDOWN_GRACE_MS);
    prepare(sandbox, polls);
    if (poll(polls, SOURCE_COUNT, timers_wait(sandbox, io_monotonic_ns())) < 0)
        return; /* EINTR only */
    const int64_t now = io_monotonic_ns();
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
    check_drain(sandbox, now);
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
