/* The event loop, and what the guest's events change.
 *
 * The descriptors to wait for follow from the state and are computed before each poll(2); one
 * function handles all that are ready. */
#include "qemu-harness/launcher/run/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/text/escape.h"
#include "qemu-harness/launcher/run/signals.h"

#define HELPER_GRACE_MS 1000 /* a file server may end a little before QEMU does */
#define SHOWN_MAX 2048
#define GUEST_NOTICES_MAX 1000

/* The fixed descriptors; the way in's follow them in the array. */
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

/* Without --server-port the command gets input once it is ready. With it, before: it may read its
 * input before it listens. */
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

static void accept_control(struct sandbox *sandbox)
{
    int fd = sandbox->machine->accept(sandbox->control.listener);
    if (fd >= 0)
        control_attach(&sandbox->control, fd);
}

static void send_config(struct sandbox *sandbox)
{
    control_send_config(&sandbox->control, sandbox->config.text, sandbox->config.length,
                        !sandbox->config.has_time);
    boot_config_wipe(&sandbox->config);
    sandbox->config_sent = true;
    timeline_add(&sandbox->timeline, "kernel", (double)(sandbox->now - sandbox->started_at) / 1e6);
}

static void handle_ready(struct sandbox *sandbox, const char *way_in)
{
    struct failure why;
    if (sandbox->phase != PHASE_BOOTING) /* a second `ready`, or one that comes too late */
        return;
    if (sandbox->machine->forward && sandbox->way_in.secret[0] &&
        sandbox->machine->forward(&sandbox->parts, way_in, &why)) {
        sandbox_fail(sandbox, false, "way-in: %s", why.text);
        return;
    }
    sandbox->phase = PHASE_RUNNING;
    if (sandbox->options.timeline)
        timeline_draw(&sandbox->timeline, stderr, terminal_line_end(&sandbox->terminal));
    terminal_enter_raw(&sandbox->terminal);
}

static void take_output(struct sandbox *sandbox, const struct control_event *event)
{
    struct output *output = event->stream == STREAM_STDERR ? &sandbox->error : &sandbox->output;
    if (event->stream == STREAM_TTY && sandbox->config.stdio != BOOT_TTY) {
        sandbox_fail(sandbox, false, "guest: it sent output of a terminal that it does not have");
        return;
    }
    if (event->stream != STREAM_STDERR)
        sandbox->out_stream = event->stream;
    if (output_put(output, event->data, event->length))
        return;
    if (sandbox->config.stdio == BOOT_LOG)
        sandbox->dropped += event->length; /* "stdio":"log" has no credit: both ends drop */
    else
        sandbox_fail(sandbox, false, "guest: it sent more output than its credit");
}

static void handle_exit(struct sandbox *sandbox, const struct control_event *event)
{
    int status = (int)event->number + (event->by_signal ? 128 : 0);
    if (sandbox->dropped)
        sandbox_notice(sandbox, "%llu bytes of output were dropped",
                       (unsigned long long)sandbox->dropped);
    sandbox_over(sandbox, status);
    control_send_ack(&sandbox->control);
}

/* True for the first GUEST_NOTICES_MAX notices that the guest causes: standard error may be a log
 * file. */
static bool may_tell(struct sandbox *sandbox)
{
    if (sandbox->guest_notices > GUEST_NOTICES_MAX)
        return false;
    if (sandbox->guest_notices++ < GUEST_NOTICES_MAX)
        return true;
    sandbox_notice(sandbox, "too many warnings from the guest: further ones are omitted");
    return false;
}

static void handle_event(struct sandbox *sandbox, const struct control_event *event)
{
    char name[CONTROL_NAME_MAX * 4], text[SHOWN_MAX];
    escape_text(name, sizeof(name), event->name, strlen(event->name), 0);
    escape_text(text, sizeof(text), event->text, strlen(event->text), 0);
    bool told = event->kind != EVENT_OUTPUT && event->kind != EVENT_CREDIT &&
                event->kind != EVENT_TIME &&
                !(event->kind == EVENT_UNKNOWN && events_is_own(event->name));
    if (told)
        events_guest_line(&sandbox->events, event->line, event->line_length);
    switch (event->kind) {
    case EVENT_HELLO:
        if (!sandbox->config_sent)
            send_config(sandbox);
        break;
    case EVENT_STAGE:
        timeline_add(&sandbox->timeline, event->name, event->ms);
        break;
    case EVENT_READY:
        handle_ready(sandbox, name);
        break;
    case EVENT_FAILED:
        control_send_ack(&sandbox->control);
        sandbox_fail(sandbox, false, "%s: %s", name[0] ? name : "guest", text);
        sandbox->kill_at = sandbox->now + POWER_OFF_MS * MILLISECONDS;
        break;
    case EVENT_WARNING:
        if (may_tell(sandbox))
            sandbox_notice(sandbox, "warning from the guest: %s", text);
        break;
    case EVENT_FIREWALL:
        if (may_tell(sandbox))
            sandbox_notice(sandbox, "the guest's firewall was changed by someone else: %s", name);
        break;
    case EVENT_OUTPUT:
        take_output(sandbox, event);
        break;
    case EVENT_DROPPED:
        if (!may_tell(sandbox))
            break;
        sandbox_notice(sandbox, "%lld lines of output were dropped", (long long)event->number);
        break;
    case EVENT_EXIT:
        handle_exit(sandbox, event);
        break;
    case EVENT_UNKNOWN:
        if (events_is_own(event->name))
            sandbox_fail(sandbox, false,
                         "guest: it sent the event `%s`, which only the host may send", name);
        break;
    case EVENT_TIME:
        control_send_time(&sandbox->control, event->number);
        break;
    case EVENT_CREDIT:
    case EVENT_KIND_COUNT:
        break;
    }
}

static void handle_control(struct sandbox *sandbox, short revents)
{
    struct control *control = &sandbox->control;
    struct control_event event;
    struct failure why;
    bool connected = true;
    if (revents)
        connected = control_receive(control);
    int result = 0;
    /* events after `exit` or `failed` are ignored */
    while (sandbox->phase < PHASE_OVER && (result = control_next(control, &event, &why)) == 1)
        handle_event(sandbox, &event);
    if (result < 0)
        sandbox_fail(sandbox, false, "guest: %s", why.text);
    if (control->overflow)
        sandbox_fail(sandbox, true, "guest: it does not read the control channel");
    if (connected && !control_flush(control))
        connected = false;
    if (!connected && control->state == CONTROL_ENDED && sandbox->phase < PHASE_OVER)
        sandbox_fail(sandbox, !sandbox->terminated,
                     "guest: the control channel ended without an exit status");
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

/* Writes what can be written and returns the credit. */
static void flush_output(struct sandbox *sandbox, struct output *output, enum control_stream stream)
{
    bool reader_was_there = output->fd >= 0;
    output_flush(output);
    size_t credit = output_take_credit(output);
    if (credit && sandbox->config.stdio != BOOT_LOG && sandbox->control.state == CONTROL_OPEN)
        control_send_credit(&sandbox->control, stream, credit);
    if (reader_was_there && output->fd < 0 && sandbox->phase < PHASE_STOPPING) {
        /* a process of this host would get SIGPIPE */
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
        sandbox_notice(sandbox, "the broker ended, so there is no egress any more (%s)", how);
        events_text(&sandbox->events, "broker_exit", "reason", how);
    }
    sandbox->broker_gone = true;
}

/* A process without which the guest cannot live has ended. The guest has HELPER_GRACE_MS to say
 * `exit` or `failed` first. */
static void note_helper_end(struct sandbox *sandbox, const struct process *process)
{
    char how[128];
    if (sandbox->phase >= PHASE_OVER)
        return;
    if (!sandbox->helper_ended)
        sandbox->helper_ended = sandbox->now;
    if (sandbox->control.state == CONTROL_OPEN &&
        sandbox->now - sandbox->helper_ended < HELPER_GRACE_MS * MILLISECONDS)
        return;
    process_describe(process, how, sizeof(how));
    sandbox_fail(sandbox, !sandbox->terminated, "%s: it ended while the guest ran (%s)",
                 process->name, how);
}

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
        case PROCESS_GUEST:
        case PROCESS_HELPER:
            note_helper_end(sandbox, process);
            break;
        case PROCESS_ROLE_COUNT:
            break;
        }
    }
}

static bool guest_ended(struct sandbox *sandbox)
{
    const struct process *guest = process_find(&sandbox->processes, PROCESS_GUEST);
    return !guest || guest->ended;
}

/* Does what is due at a time. */
static void look_at_clock(struct sandbox *sandbox)
{
    if (sandbox->phase == PHASE_BOOTING && sandbox->control.state < CONTROL_OPEN &&
        sandbox->now >= sandbox->hello_by)
        sandbox_fail(sandbox, true, "guest: it did not say hello within %u s",
                     sandbox->link.hello_seconds);
    if (sandbox->phase < PHASE_OVER && sandbox->now >= sandbox->kill_at)
        sandbox_fail(sandbox, false, "guest: it did not end in time and was killed");
    if (sandbox->phase == PHASE_OVER && !output_pending(&sandbox->output) &&
        !output_pending(&sandbox->error) &&
        (guest_ended(sandbox) || sandbox->now >= sandbox->kill_at))
        sandbox->phase = PHASE_DONE;
}

static int wait_milliseconds(const struct sandbox *sandbox)
{
    int64_t due = NEVER;
    if (sandbox->phase == PHASE_BOOTING && sandbox->control.state < CONTROL_OPEN)
        due = sandbox->hello_by;
    if (sandbox->kill_at > sandbox->now && sandbox->kill_at < due)
        due = sandbox->kill_at;
    int64_t helper = sandbox->helper_ended + (HELPER_GRACE_MS + 1) * MILLISECONDS;
    if (sandbox->helper_ended && helper > sandbox->now && helper < due)
        due = helper;
    return io_timeout_ms(due, sandbox->now);
}

static void handle_sources(struct sandbox *sandbox, struct pollfd *fds)
{
    if (fds[SOURCE_SIGNALS].revents)
        signals_handle(sandbox);
    if (fds[SOURCE_CONSOLE].revents)
        console_read(&sandbox->console);
    if (fds[SOURCE_DIAGNOSTICS].revents)
        console_read(&sandbox->diagnostics);
    if (sandbox->broker.wanted)
        handle_broker(sandbox, fds);
    if (fds[SOURCE_LISTENER].revents)
        accept_control(sandbox);
    if (fds[SOURCE_STDIN].revents && wants_input(sandbox))
        handle_stdin(sandbox);
    if (sandbox->control.fd >= 0)
        handle_control(sandbox, fds[SOURCE_CONTROL].revents & (POLLIN | POLLHUP | POLLERR));
    flush_output(sandbox, &sandbox->output, sandbox->out_stream);
    flush_output(sandbox, &sandbox->error, STREAM_STDERR);
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
        way_in_work(&sandbox->way_in, &sandbox->link, fds + SOURCE_COUNT, count, sandbox->now);
    }
    return sandbox->exit_status;
}
