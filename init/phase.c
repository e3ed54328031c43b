/* How the server ends, and what becomes of its output.
 *
 * The end of the group's leader begins the draining. Other processes of the group that still hold
 * its output get DRAIN_LIMIT; then they are killed, whatever they still write: one that writes
 * without end would keep the session open forever. Output that was written by then is delivered.
 * Where nothing may be lost (`pipe`, `tty`) a slow host gets as long as it needs, unless the end
 * was asked for (`hurry`).
 */
#include "init/phase.h"

#include <signal.h>

#include "common/os/io.h"

#define DRAIN_LIMIT (500 * MILLISECONDS)
#define WAIT_STATUS_KILLED                                                                         \
    SIGKILL /* as waitpid(2) returns it: for a leader that cannot be reaped */

static bool server_is_alive(const struct sandbox *sandbox)
{
    return sandbox->phase >= PHASE_STARTING && sandbox->phase <= PHASE_ENDING;
}

void phase_set(struct sandbox *sandbox, enum phase phase, int64_t timer)
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
    phase_set(sandbox, PHASE_KILLED, now + DRAIN_LIMIT);
}

void phase_shutdown(struct sandbox *sandbox, int64_t grace_ms)
{
    const int64_t end = io_monotonic_ns() + grace_ms * MILLISECONDS;

    sandbox->hurry = true;
    if (sandbox->phase == PHASE_ENDING && end < sandbox->timers[TIMER_PHASE])
        sandbox->timers[TIMER_PHASE] = end;
    if (sandbox->phase != PHASE_STARTING && sandbox->phase != PHASE_RUNNING)
        return;
    (void)server_signal(&sandbox->server, &sandbox->io, SIGTERM);
    /* a stopped process handles SIGTERM only once it continues */
    (void)server_signal(&sandbox->server, &sandbox->io, SIGCONT);
    if (sandbox->config.server.stdio == STDIO_TTY) /* interactive shells ignore SIGTERM */
        (void)server_signal(&sandbox->server, &sandbox->io, SIGHUP);
    phase_set(sandbox, PHASE_ENDING, end);
}

void phase_server_ended(struct sandbox *sandbox, int wait_status, int64_t now)
{
    sandbox->server.ended = true;
    sandbox->server.wait_status = wait_status;
    if (server_is_alive(sandbox))
        phase_set(sandbox, PHASE_DRAINING, now + DRAIN_LIMIT);
}

/* The drain is over when no process can write any more and all output was handed on. */
void phase_check_drain(struct sandbox *sandbox, int64_t now)
{
    if (sandbox->phase == PHASE_DRAINING && server_io_drained(&sandbox->io))
        kill_server(sandbox, now);
    if (sandbox->phase == PHASE_KILLED && sandbox->server.ended &&
        server_io_drained(&sandbox->io) && control_output_free(&sandbox->control) &&
        !cgroup_populated(sandbox->cgroups.server_fd))
        phase_set(sandbox, PHASE_ENDED, 0);
}

void phase_extend_drain(struct sandbox *sandbox, int64_t now)
{
    const bool lossless =
        sandbox->io.mode != STDIO_LOG && !sandbox->hurry && !sandbox->control.ended;

    if (sandbox->phase == PHASE_KILLED && lossless &&
        server_io_waits_for_host(&sandbox->io, &sandbox->control))
        sandbox->timers[TIMER_PHASE] = now + DRAIN_LIMIT;
}

void phase_expire(struct sandbox *sandbox, int64_t now)
{
    if (sandbox->phase == PHASE_KILLED) {
        if (!sandbox->server.ended)
            sandbox->server.wait_status = WAIT_STATUS_KILLED;
        server_io_give_up(&sandbox->io, &sandbox->control);
        phase_set(sandbox, PHASE_ENDED, 0);
    } else {
        kill_server(sandbox, now);
    }
}
