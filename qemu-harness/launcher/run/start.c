/* The start: the first step that fails is named in the message. */
#include "qemu-harness/launcher/run/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/text/encoding.h"
#include "common/text/escape.h"
#include "qemu-harness/launcher/host/programs.h"
#include "qemu-harness/launcher/run/signals.h"

#define DIAGNOSTICS_LINES 10

static int step_files(struct sandbox *sandbox, struct failure *why)
{
    int result = events_open(&sandbox->events, sandbox->options.events, why);
    if (!result)
        result = console_open(&sandbox->console, sandbox->options.console, why);
    if (!result)
        result = console_open(&sandbox->diagnostics, NULL, why);
    if (!result)
        result = output_open(&sandbox->output, STDOUT_FILENO, why);
    if (!result)
        result = output_open(&sandbox->error, STDERR_FILENO, why);
    return result;
}

static int step_config(struct sandbox *sandbox, struct failure *why)
{
    return boot_config_open(&sandbox->config, sandbox->options.config, why);
}

static int step_machine(struct sandbox *sandbox, struct failure *why)
{
    return sandbox->machine->open(&sandbox->parts, &sandbox->found, why);
}

static int step_mounts(struct sandbox *sandbox, struct failure *why)
{
    struct found_paths found = sandbox->found;
    found.this_program = program_own;
    found.run_folder = sandbox->folder.path;
    int result = mount_table_open(&sandbox->mounts, &sandbox->options.mounts, why);
    if (!result)
        result = mount_check(&sandbox->mounts, &sandbox->options, &found, why);
    return result;
}

static int step_account(struct sandbox *sandbox, struct failure *why)
{
    (void)why;
    account_choose(&sandbox->account, &sandbox->mounts);
    for (unsigned i = 0; i < sandbox->mounts.count; i++) {
        const struct mount *mount = &sandbox->mounts.entries[i];
        char shown[FAILURE_TEXT_MAX];
        if (mount->spec.readonly ||
            mount_writable_by(mount, sandbox->account.uid, sandbox->account.gid))
            continue;
        escape_text(shown, sizeof(shown), mount->real, strlen(mount->real), 0);
        sandbox_notice(sandbox, "%s is mounted for writing, but uid %u cannot write there", shown,
                       sandbox->account.uid);
    }
    return 0;
}

static int step_vsock(struct sandbox *sandbox, struct failure *why)
{
    return sandbox->machine->connect(&sandbox->parts, &sandbox->link, why);
}

static int step_broker(struct sandbox *sandbox, struct failure *why)
{
    const struct options *options = &sandbox->options;
    if (!options->gateway_url && (options->rules || options->app_data))
        sandbox_notice(sandbox,
                       "no gateway login, so there is no egress and the rules have no effect");
    return broker_start(&sandbox->broker, options, &sandbox->link, &sandbox->processes, why);
}

static int step_way_in(struct sandbox *sandbox, struct failure *why)
{
    const struct options *options = &sandbox->options;
    int result =
        way_in_open(&sandbox->way_in, options->server_port, options->port, &sandbox->folder, why);
    if (!result && sandbox->way_in.tcp_port)
        sandbox_notice(sandbox,
                       "warning: the way in is on 127.0.0.1:%u, open to every user and program of "
                       "this host",
                       sandbox->way_in.tcp_port);
    return result;
}

static int step_file_server(struct sandbox *sandbox, struct failure *why)
{
    sandbox->parts.console = sandbox->console.guest_fd;
    sandbox->parts.diagnostics = sandbox->diagnostics.guest_fd;
    return sandbox->machine->serve_folders(&sandbox->parts, why);
}

static int step_guest(struct sandbox *sandbox, struct failure *why)
{
    struct control_ends ends = {.listener = -1, .connection = -1};
    int result = sandbox->machine->start(&sandbox->parts, &ends, why);
    sandbox->started_at = io_monotonic_ns();
    /* the guest's copies must be the last, so that their end of file is the guest's end */
    fd_close(&sandbox->console.guest_fd);
    fd_close(&sandbox->diagnostics.guest_fd);
    sandbox->control.listener = ends.listener;
    sandbox->control.fd = ends.connection;
    if (result < 0)
        return result;
    result = control_init(&sandbox->control, ends.listener, why);
    if (!result && ends.connection >= 0)
        control_attach(&sandbox->control, ends.connection);
    return result;
}

/* Waits for the broker while the guest boots. */
static int step_ready_broker(struct sandbox *sandbox, struct failure *why)
{
    int result;
    while ((result = broker_wait_ready(&sandbox->broker, &sandbox->link, &sandbox->processes,
                                       sandbox->signals, why)) == -EINTR) {
        signals_handle(sandbox); /* often only SIGCHLD */
        if (sandbox->phase == PHASE_DONE)
            return -EINTR;
    }
    sandbox->broker_gone |= sandbox->broker.rules_only;
    if (!result && sandbox->broker.wanted)
        events_broker_ready(&sandbox->events, sandbox->broker.egress);
    return result;
}

static int step_boot_config(struct sandbox *sandbox, struct failure *why)
{
    unsigned char random[4];
    char id[2 * sizeof(random) + 1];
    int result = secret_random(random, sizeof(random));
    if (result)
        return failure_errno(why, -result, "random");
    hex_encode(id, random, sizeof(random));
    struct boot_config_parts parts = {
        .options = &sandbox->options,
        .account = &sandbox->account,
        .mounts = &sandbox->mounts,
        .broker = &sandbox->broker,
        .link = &sandbox->link,
        .way_in_secret = sandbox->way_in.secret,
        .id = id,
        .stdio = sandbox->terminal.present ? BOOT_TTY : BOOT_PIPE,
    };
    if (!terminal_size(&parts.rows, &parts.columns))
        parts.rows = parts.columns = 0;
    result = boot_config_write(&sandbox->config, &parts, why);
    /* only a command that has the terminal may steer ours */
    sandbox->output.escape = sandbox->output.terminal && sandbox->config.stdio != BOOT_TTY;
    sandbox->error.escape = sandbox->error.terminal;
    return result;
}

static int step_run_folder(struct sandbox *sandbox, struct failure *why)
{
    return run_folder_make(&sandbox->folder, why);
}

struct start_step {
    const char *name; /* as the reason of status 125 names it */
    int (*run)(struct sandbox *, struct failure *);
};

static const struct start_step start_steps[] = {
    {"signals", signals_watch},
    {"config", step_config},
    {"runtime-folder", step_run_folder},
    {"machine", step_machine},
    {"mounts", step_mounts},
    {"files",
     step_files}, /* after `mounts`: an earlier guest may have put a link in the place of one */
    {"account", step_account},
    {"vsock", step_vsock},
    {"broker", step_broker},
    {"way-in", step_way_in},
    {"file-server", step_file_server},
    {"qemu", step_guest},
    {"broker", step_ready_broker},
    {"boot-config", step_boot_config},
};

int sandbox_start(struct sandbox *sandbox, struct failure *why)
{
    terminal_init(&sandbox->terminal);
    for (size_t i = 0; i < ARRAY_LENGTH(start_steps); i++) {
        int result = start_steps[i].run(sandbox, why);
        if (result == -EINTR)
            return result;
        if (result < 0)
            return failure_prefix(why, result, "%s", start_steps[i].name);
    }
    sandbox->now = io_monotonic_ns();
    sandbox->hello_by = sandbox->now + sandbox->link.hello_seconds * SECONDS;
    if (sandbox->way_in.secret[0]) {
        events_way_in(&sandbox->events, sandbox->way_in.path, sandbox->way_in.tcp_port);
        fprintf(stderr, "codev-sandbox: way in: %s\n", sandbox->way_in.path);
    }
    return 0;
}

void sandbox_report_start(struct sandbox *sandbox, const struct failure *why)
{
    char shown[2 * FAILURE_TEXT_MAX];
    console_read(&sandbox->diagnostics);
    console_show_tail(&sandbox->diagnostics, DIAGNOSTICS_LINES, stderr, "host: ");
    escape_text(shown, sizeof(shown), why->text, strlen(why->text), 0);
    sandbox_notice(sandbox, "%s", shown);
}
