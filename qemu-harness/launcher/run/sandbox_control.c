/* What the guest says, and what that changes here. */
#include "qemu-harness/launcher/run/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/text/escape.h"

#define SHOWN_MAX 2048
#define GUEST_NOTICES_MAX 1000

void sandbox_accept_control(struct sandbox *sandbox)
{
    int fd = vsock_accept(&sandbox->vsock, sandbox->control.listener);
    if (fd >= 0)
        control_attach(&sandbox->control, fd);
}

static void send_config(struct sandbox *sandbox)
{
    control_send_config(&sandbox->control, sandbox->config, (size_t)sandbox->config_length,
                        !sandbox->config_has_time);
    secret_wipe(sandbox->config, BOOT_CONFIG_SIZE);
    free(sandbox->config);
    sandbox->config = NULL;
    sandbox->config_sent = true;
    timeline_add(&sandbox->timeline, "kernel", (double)(sandbox->now - sandbox->started_at) / 1e6);
}

static void handle_ready(struct sandbox *sandbox, const char *way_in)
{
    struct failure why;
    if (sandbox->phase != PHASE_BOOTING) /* said twice, or too late to matter */
        return;
    if (sandbox->wsl.wanted && sandbox->way_in.secret[0] &&
        wsl_forward(&sandbox->wsl, sandbox->vsock.path, way_in, &sandbox->processes, &why)) {
        sandbox_fail(sandbox, false, "way-in: %s", why.text);
        return;
    }
    sandbox->phase = PHASE_RUNNING;
    if (sandbox->options.timeline)
        timeline_draw(&sandbox->timeline, stderr, terminal_line_end(&sandbox->terminal));
    terminal_enter_raw(&sandbox->terminal);
}

static void handle_output(struct sandbox *sandbox, const struct control_event *event)
{
    struct output *output = event->stream == STREAM_STDERR ? &sandbox->error : &sandbox->output;
    if (event->stream == STREAM_TTY && !sandbox->steers_terminal) {
        sandbox_fail(sandbox, false, "guest: it sent a terminal's output and has no terminal");
        return;
    }
    if (event->stream != STREAM_STDERR)
        sandbox->out_stream = event->stream;
    if (output_put(output, event->data, event->length))
        return;
    if (sandbox->log_drops)
        sandbox->dropped += event->length; /* "stdio":"log" has no credit: it drops, as there */
    else
        sandbox_fail(sandbox, false, "guest: it sent more output than it was given credit for");
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

/* True while what the guest wants to be told is told: standard error may be somebody's log. */
static bool may_tell(struct sandbox *sandbox)
{
    if (sandbox->guest_notices > GUEST_NOTICES_MAX)
        return false;
    if (sandbox->guest_notices++ < GUEST_NOTICES_MAX)
        return true;
    sandbox_notice(sandbox, "too many warnings from the guest: left out from here");
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
        sandbox->kill_at = sandbox->now + POWER_OFF_MS * 1000000LL;
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
        handle_output(sandbox, event);
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
                         "guest: it sent the event `%s`, which only the host may say", name);
        break;
    case EVENT_TIME:
        control_send_time(&sandbox->control, event->number);
        break;
    case EVENT_CREDIT:
    case EVENT_KIND_COUNT:
        break;
    }
}

void sandbox_handle_control(struct sandbox *sandbox, short revents)
{
    struct control *control = &sandbox->control;
    struct control_event event;
    struct failure why;
    bool connected = true;
    if (revents)
        connected = control_receive(control);
    int result = 0;
    /* what came after `exit` or `failed` is not listened to */
    while (sandbox->phase < PHASE_OVER && (result = control_next(control, &event, &why)) == 1)
        handle_event(sandbox, &event);
    if (result < 0)
        sandbox_fail(sandbox, false, "guest: %s", why.text);
    if (control->overflow)
        sandbox_fail(sandbox, true, "guest: it has stopped reading the control channel");
    if (connected && !control_flush(control))
        connected = false;
    if (!connected && control->state == CONTROL_ENDED && sandbox->phase < PHASE_OVER)
        sandbox_fail(sandbox, !sandbox->terminated,
                     "guest: the control channel ended without an exit status");
}
