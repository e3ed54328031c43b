/* The event loop: what is waited for follows from the state, is computed anew each time, and is handled
 * in one place. */
#include "qemu-harness/launcher/run/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define MS 1000000LL
#define CONSOLE_TAIL_LINES 20

/* The fixed sources; the way in's connections stand behind them in the array. */
enum source {
    SOURCE_SIGNALS,
    SOURCE_LISTENER,
    SOURCE_CONTROL,
    SOURCE_STDIN,
    SOURCE_STDOUT,
    SOURCE_STDERR,
    SOURCE_CONSOLE,
    SOURCE_DIAGNOSTICS,
    SOURCE_BROKER_OUT,
    SOURCE_BROKER_ERR,
    SOURCE_COUNT
};

void sandbox_notice(struct sandbox *sandbox, const char *format, ...)
{
    char text[4096];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    fprintf(stderr, "codev-sandbox: %s%s", text, terminal_line_end(&sandbox->terminal));
    events_text(&sandbox->events, "notice", "text", text);
}

void sandbox_over(struct sandbox *sandbox, int exit_status)
{
    if (sandbox->phase >= PHASE_OVER)
        return;
    sandbox->phase = PHASE_OVER;
    sandbox->exit_status = exit_status;
    output_finish(&sandbox->output);
    output_finish(&sandbox->error);
    sandbox->kill_at = sandbox->now + POWER_OFF_MS * MS;
}

void sandbox_fail(struct sandbox *sandbox, bool show_console, const char *format, ...)
{
    char text[4096];
    va_list values;
    if (sandbox->phase >= PHASE_OVER)
        return;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    terminal_restore(&sandbox->terminal);
    if (show_console) {
        console_read(&sandbox->console);
        console_read(&sandbox->diagnostics);
        console_show_tail(&sandbox->console, CONSOLE_TAIL_LINES, stderr, "console: ");
        console_show_tail(&sandbox->diagnostics, CONSOLE_TAIL_LINES, stderr, "host: ");
    }
    sandbox_notice(sandbox, "%s", text);
    sandbox_over(sandbox, EXIT_CANNOT_START);
    sandbox->kill_at = sandbox->now; /* there is nothing to be expected of it */
}

void sandbox_request_stop(struct sandbox *sandbox, int exit_status_if_booting)
{
    if (!sandbox->config_sent) {
        sandbox->exit_status = exit_status_if_booting;
        sandbox->phase = PHASE_DONE;
        return;
    }
    if (sandbox->phase >= PHASE_STOPPING)
        return;
    sandbox->phase = PHASE_STOPPING;
    sandbox->kill_at = sandbox->now + (SHUTDOWN_GRACE_MS + STOP_EXTRA_MS) * MS;
    control_send_shutdown(&sandbox->control, SHUTDOWN_GRACE_MS);
}

/* A command without a port is ready at once; one with a port may want its input before it listens. */
static bool wants_input(const struct sandbox *sandbox)
{
    bool started =
        sandbox->options.server_port > 0 ? sandbox->config_sent : sandbox->phase >= PHASE_RUNNING;
    return started && sandbox->phase < PHASE_OVER && !sandbox->input_ended &&
           control_input_room(&sandbox->control) > 0;
}

static void watch(struct pollfd *fds, enum source source, int fd, short events)
{
    fds[source] = (struct pollfd){.fd = events ? fd : -1, .events = events};
}

static void watch_sources(const struct sandbox *sandbox, struct pollfd *fds)
{
    const struct control *control = &sandbox->control;
    short write = control_wants_write(control) ? POLLOUT : 0;
    short read = sandbox->phase < PHASE_OVER ? POLLIN : 0;
    watch(fds, SOURCE_SIGNALS, sandbox->signals, POLLIN);
    watch(fds, SOURCE_LISTENER, control->listener,
          control->state == CONTROL_LISTENING ? POLLIN : 0);
    watch(fds, SOURCE_CONTROL, control->fd, (short)(read | write));
    watch(fds, SOURCE_STDIN, STDIN_FILENO, wants_input(sandbox) ? POLLIN : 0);
    watch(fds, SOURCE_STDOUT, sandbox->output.fd, output_pending(&sandbox->output) ? POLLOUT : 0);
    watch(fds, SOURCE_STDERR, sandbox->error.fd, output_pending(&sandbox->error) ? POLLOUT : 0);
    watch(fds, SOURCE_CONSOLE, sandbox->console.fd, POLLIN);
    watch(fds, SOURCE_DIAGNOSTICS, sandbox->diagnostics.fd, POLLIN);
    watch(fds, SOURCE_BROKER_OUT, sandbox->broker.out, POLLIN);
    watch(fds, SOURCE_BROKER_ERR, sandbox->broker.err, POLLIN);
}

static void handle_stdin(struct sandbox *sandbox)
{
    unsigned char data[CONTROL_DATA_MAX];
    ssize_t length = read(STDIN_FILENO, data, control_input_room(&sandbox->control));
    if (length < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (length > 0) {
        control_send_input(&sandbox->control, data, (size_t)length);
        return;
    }
    sandbox->input_ended = true;
    control_send_input_end(&sandbox->control);
}

/* Writes what can be written and gives the credit back. */
static void handle_output(struct sandbox *sandbox, struct output *output,
                          enum control_stream stream)
{
    bool reader_was_there = output->fd >= 0;
    output_flush(output);
    size_t credit = output_take_credit(output);
    if (credit && !sandbox->log_drops && sandbox->control.state == CONTROL_OPEN)
        control_send_credit(&sandbox->control, stream, credit);
    if (reader_was_there && output->fd < 0 && sandbox->phase < PHASE_STOPPING) {
        /* what a process of this host would be told by SIGPIPE */
        sandbox->terminated = true;
        sandbox_request_stop(sandbox, 128 + SIGPIPE);
    }
}

static void handle_broker_lines(struct sandbox *sandbox, struct line_buffer *lines)
{
    struct json line;
    char message[FAILURE_TEXT_MAX];
    enum broker_line kind;
    while ((kind = broker_next_line(&sandbox->broker, lines, &line, message, sizeof(message))) !=
           BROKER_NOTHING) {
        if (kind == BROKER_EVENT)
            events_broker_line(&sandbox->events, &line);
        else
            sandbox_notice(sandbox, "broker: %s", message);
    }
}

static void handle_broker(struct sandbox *sandbox, struct pollfd *fds)
{
    struct broker *broker = &sandbox->broker;
    if (fds[SOURCE_BROKER_OUT].revents)
        broker_read(broker, &broker->out, &broker->out_lines);
    if (fds[SOURCE_BROKER_ERR].revents)
        broker_read(broker, &broker->err, &broker->err_lines);
    handle_broker_lines(sandbox, &broker->out_lines);
    handle_broker_lines(sandbox, &broker->err_lines);
}

static void note_broker_end(struct sandbox *sandbox, const struct process *process)
{
    char how[128];
    if (!sandbox->broker_gone && sandbox->phase < PHASE_STOPPING) {
        process_describe(process, how, sizeof(how));
        sandbox_notice(sandbox, "the broker ended: no egress any more (%s)", how);
        events_text(&sandbox->events, "broker_exit", "reason", how);
    }
    sandbox->broker_gone = true;
}

/* A process without which the guest cannot live. If it said how it ended, that is read first. */
static void note_helper_end(struct sandbox *sandbox, const struct process *process)
{
    char how[128];
    if (sandbox->phase >= PHASE_OVER)
        return;
    if (!sandbox->helper_ended)
        sandbox->helper_ended = sandbox->now;
    if (sandbox->control.state == CONTROL_OPEN &&
        sandbox->now - sandbox->helper_ended < HELPER_GRACE_MS * MS)
        return;
    process_describe(process, how, sizeof(how));
    sandbox_fail(sandbox, !sandbox->terminated, "%s: it ended while the guest ran (%s)",
                 process_role_names[process->role], how);
}

/* Processes that have ended. */
static void look_after_processes(struct sandbox *sandbox)
{
    for (unsigned i = 0; i < sandbox->processes.count; i++) {
        const struct process *process = &sandbox->processes.entries[i];
        if (!process->ended)
            continue;
        switch (process->role) {
        case PROCESS_BROKER:
            note_broker_end(sandbox, process);
            break;
        case PROCESS_FORWARD: /* the way in is gone, no more than that */
            break;
        case PROCESS_QEMU:
        case PROCESS_WSL:
        case PROCESS_FILE_SERVER:
        case PROCESS_VSOCK_DEVICE:
            note_helper_end(sandbox, process);
            break;
        case PROCESS_ROLE_COUNT:
            break;
        }
    }
}

/* A rig does not end with the sandbox that ran in it: there it is codev-init whose end counts. */
static bool guest_ended(struct sandbox *sandbox)
{
    const struct process *guest =
        process_find(&sandbox->processes, sandbox->wsl.wanted ? PROCESS_WSL : PROCESS_QEMU);
    return !guest || guest->ended;
}

/* What is due without an event. */
static void look_at_clock(struct sandbox *sandbox)
{
    if (sandbox->phase == PHASE_BOOTING && sandbox->control.state < CONTROL_OPEN &&
        sandbox->now >= sandbox->hello_by)
        sandbox_fail(sandbox, true, "guest: it did not say hello within %d s",
                     sandbox->accelerator.kvm ? HELLO_SECONDS_KVM : HELLO_SECONDS_TCG);
    if (sandbox->phase < PHASE_OVER && sandbox->now >= sandbox->kill_at)
        sandbox_fail(sandbox, false, "guest: it did not end in time and was killed");
    if (sandbox->phase == PHASE_OVER && !output_pending(&sandbox->output) &&
        !output_pending(&sandbox->error) &&
        (guest_ended(sandbox) || sandbox->now >= sandbox->kill_at))
        sandbox->phase = PHASE_DONE;
}

static int wait_milliseconds(const struct sandbox *sandbox)
{
    int64_t due = INT64_MAX;
    if (sandbox->phase == PHASE_BOOTING && sandbox->control.state < CONTROL_OPEN)
        due = sandbox->hello_by;
    if (sandbox->kill_at > sandbox->now && sandbox->kill_at < due)
        due = sandbox->kill_at;
    int64_t helper = sandbox->helper_ended + (HELPER_GRACE_MS + 1) * MS;
    if (sandbox->helper_ended && helper > sandbox->now && helper < due)
        due = helper;
    if (due == INT64_MAX)
        return -1;
    int64_t left = (due - sandbox->now + MS - 1) / MS;
    return left < 0 ? 0 : (int)left;
}

static void handle_sources(struct sandbox *sandbox, struct pollfd *fds)
{
    if (fds[SOURCE_SIGNALS].revents)
        sandbox_handle_signals(sandbox);
    if (fds[SOURCE_CONSOLE].revents)
        console_read(&sandbox->console);
    if (fds[SOURCE_DIAGNOSTICS].revents)
        console_read(&sandbox->diagnostics);
    if (sandbox->broker.wanted)
        handle_broker(sandbox, fds);
    if (fds[SOURCE_LISTENER].revents)
        sandbox_accept_control(sandbox);
    if (fds[SOURCE_STDIN].revents && wants_input(sandbox))
        handle_stdin(sandbox);
    if (sandbox->control.fd >= 0)
        sandbox_handle_control(sandbox, fds[SOURCE_CONTROL].revents & (POLLIN | POLLHUP | POLLERR));
    handle_output(sandbox, &sandbox->output, sandbox->out_stream);
    handle_output(sandbox, &sandbox->error, STREAM_STDERR);
    if (sandbox->control.fd >= 0)
        control_flush(&sandbox->control);
    look_after_processes(sandbox);
    look_at_clock(sandbox);
}

int sandbox_run(struct sandbox *sandbox)
{
    struct pollfd fds[SOURCE_COUNT + WAY_IN_POLLS_MAX];
    while (sandbox->phase != PHASE_DONE) {
        sandbox->now = io_monotonic_ns();
        int timeout = wait_milliseconds(sandbox);
        watch_sources(sandbox, fds);
        bool open = sandbox->phase >= PHASE_RUNNING && sandbox->phase < PHASE_OVER;
        unsigned count =
            way_in_poll(&sandbox->way_in, fds + SOURCE_COUNT, open, sandbox->now, &timeout);
        if (poll(fds, SOURCE_COUNT + count, timeout) < 0 && errno != EINTR)
            break;
        sandbox->now = io_monotonic_ns();
        handle_sources(sandbox, fds);
        way_in_work(&sandbox->way_in, &sandbox->vsock, fds + SOURCE_COUNT, count, sandbox->now);
    }
    return sandbox->exit_status;
}
