/* The empty sandbox, the reasons for its end, and the end itself: everything that was made is
 * undone. */
#include "qemu-harness/launcher/run/sandbox.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define CHILDREN_GRACE_MS 2000
#define CONSOLE_TAIL_LINES 20

void sandbox_init(struct sandbox *sandbox, const struct machine *machine)
{
    sandbox->machine = machine;
    sandbox->parts = (struct machine_parts){
        .options = &sandbox->options,
        .folder = &sandbox->folder,
        .processes = &sandbox->processes,
        .mounts = &sandbox->mounts,
        .account = &sandbox->account,
    };
    sandbox->folder.lock = -1;
    sandbox->broker.life = sandbox->broker.out = sandbox->broker.err = -1;
    sandbox->control.listener = sandbox->control.fd = -1;
    sandbox->console.fd = sandbox->console.guest_fd = sandbox->console.file = -1;
    sandbox->diagnostics = sandbox->console;
    sandbox->output.fd = sandbox->error.fd = -1;
    sandbox->way_in.unix_listener = sandbox->way_in.tcp_listener = -1;
    sandbox->events.fd = sandbox->signals = -1;
    sandbox->kill_at = sandbox->hello_by = NEVER;
}

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
    sandbox->kill_at = sandbox->now + POWER_OFF_MS * MILLISECONDS;
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
    sandbox->kill_at = sandbox->now; /* nothing more is expected of the guest */
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
    sandbox->kill_at = sandbox->now + (SHUTDOWN_GRACE_MS + STOP_EXTRA_MS) * MILLISECONDS;
    control_send_shutdown(&sandbox->control, SHUTDOWN_GRACE_MS);
}

void sandbox_stop(struct sandbox *sandbox)
{
    terminal_restore(&sandbox->terminal);
    way_in_close(&sandbox->way_in);
    broker_close(&sandbox->broker);
    process_stop_all(&sandbox->processes, CHILDREN_GRACE_MS);
    control_destroy(&sandbox->control);
    console_close(&sandbox->console);
    console_close(&sandbox->diagnostics);
    output_close(&sandbox->output);
    output_close(&sandbox->error);
    sandbox->machine->close();
    mount_table_close(&sandbox->mounts);
    fd_close(&sandbox->signals);
    run_folder_remove(&sandbox->folder);
    events_close(&sandbox->events);
    boot_config_close(&sandbox->config);
}
