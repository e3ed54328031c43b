/* The start: a table of named steps. The first that fails names itself. */
#include "qemu-harness/launcher/run/sandbox.h"

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
    if (!sandbox->options.config)
        return 0;
    sandbox->overlay_length = boot_config_read(sandbox->options.config, &sandbox->overlay, why);
    return sandbox->overlay_length < 0 ? (int)sandbox->overlay_length : 0;
}

static int step_machine(struct sandbox *sandbox, struct failure *why)
{
    if (sandbox->options.wsl)
        return wsl_open(&sandbox->wsl, &sandbox->options, &sandbox->folder, why);
    int result = qemu_open(&sandbox->qemu, &sandbox->options, why);
    if (!result)
        accelerator_choose(&sandbox->accelerator, qemu_arch(&sandbox->qemu));
    return result;
}

static int step_mounts(struct sandbox *sandbox, struct failure *why)
{
    const struct options *options = &sandbox->options;
    char this_program[PATH_MAX];
    int result = program_own(this_program);
    if (result)
        return failure_errno(why, -result, "path of this program");
    struct found_paths found = {
        .run_folder = sandbox->folder.path,
        .this_program = this_program,
        .machine_program = options->wsl ? sandbox->wsl.program : sandbox->qemu.program,
        .machine_folder = options->wsl_rig,
        .kernel = sandbox->qemu.kernel_path,
        .image = options->wsl ? sandbox->wsl.image_path : sandbox->qemu.image_path,
    };
    result = mount_table_open(&sandbox->mounts, &options->mounts, why);
    if (!result)
        result = mount_check(&sandbox->mounts, options, &found, why);
    return result || !options->wsl ? result : wsl_name_mounts(&sandbox->wsl, &sandbox->mounts, why);
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
    if (sandbox->options.wsl) {
        vsock_do_without(&sandbox->vsock, &sandbox->folder);
        return 0;
    }
    return vsock_start(&sandbox->vsock, &sandbox->options, &sandbox->folder, &sandbox->processes,
                       why);
}

static int step_broker(struct sandbox *sandbox, struct failure *why)
{
    const struct options *options = &sandbox->options;
    if (!options->gateway_url && (options->rules || options->app_data))
        sandbox_notice(sandbox, "no gateway login: no egress at all, the rules take no effect");
    return broker_start(&sandbox->broker, options, &sandbox->vsock, &sandbox->processes, why);
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
    if (sandbox->options.wsl)
        return 0; /* the rig's QEMU is */
    int result = file_server_choose(&sandbox->file_server, &sandbox->options, why);
    if (result)
        return result;
    return file_server_start(&sandbox->file_server, &sandbox->mounts, &sandbox->account,
                             &sandbox->folder, &sandbox->processes, sandbox->diagnostics.guest_fd,
                             why);
}

static int start_wsl(struct sandbox *sandbox, struct failure *why)
{
    int result = control_init(&sandbox->control, -1, why);
    if (result)
        return result;
    result = wsl_start(&sandbox->wsl, &sandbox->options, &sandbox->mounts, &sandbox->account,
                       sandbox->diagnostics.guest_fd, &sandbox->processes, why);
    if (result < 0)
        return result;
    control_attach(&sandbox->control, result);
    sandbox->started_at = io_monotonic_ns();
    fd_close(&sandbox->console.guest_fd);
    fd_close(&sandbox->diagnostics.guest_fd);
    return 0;
}

static int step_qemu(struct sandbox *sandbox, struct failure *why)
{
    if (sandbox->options.wsl)
        return start_wsl(sandbox, why);
    uint32_t port;
    int listener = vsock_listen_control(&sandbox->vsock, &port, why);
    if (listener < 0)
        return listener;
    int result = control_init(&sandbox->control, listener, why);
    if (result)
        return result;
    struct qemu_parts parts = {
        .options = &sandbox->options,
        .accelerator = &sandbox->accelerator,
        .mounts = &sandbox->mounts,
        .file_server = &sandbox->file_server,
        .vsock = &sandbox->vsock,
        .account = &sandbox->account,
        .folder = &sandbox->folder,
        .control_port = port,
        .console = sandbox->console.guest_fd,
        .diagnostics = sandbox->diagnostics.guest_fd,
    };
    result = qemu_start(&sandbox->qemu, &parts, &sandbox->processes, why);
    sandbox->started_at = io_monotonic_ns();
    /* QEMU has them now: their end is its end */
    fd_close(&sandbox->console.guest_fd);
    fd_close(&sandbox->diagnostics.guest_fd);
    fd_close(&sandbox->vsock.device);
    file_server_release(&sandbox->file_server);
    return result;
}

/* While the guest boots already. */
static int step_ready_broker(struct sandbox *sandbox, struct failure *why)
{
    int result;
    while ((result = broker_wait_ready(&sandbox->broker, &sandbox->vsock, &sandbox->processes,
                                       sandbox->signals, why)) == -EINTR) {
        sandbox_handle_signals(sandbox); /* often only a child's end */
        if (sandbox->phase == PHASE_DONE)
            return -EINTR;
    }
    sandbox->broker_gone |= sandbox->broker.rules_only;
    if (!result && sandbox->broker.wanted)
        events_broker_ready(&sandbox->events, sandbox->broker.egress);
    return result;
}

/* --config may have changed it. A log has no credit, it drops instead; only a terminal's bytes go to ours as they
 * are. */
static int look_at_config(struct sandbox *sandbox, struct failure *why)
{
    CLEANUP_FREE struct json_token *tokens = calloc(CONTROL_TOKENS_MAX, sizeof(*tokens));
    struct json config;
    struct json_position where;
    if (!tokens)
        return failure_errno(why, ENOMEM, "boot configuration");
    if (json_parse(&config, sandbox->config, (size_t)sandbox->config_length, tokens,
                   CONTROL_TOKENS_MAX, &where))
        return failure_set(why, E2BIG, "%s", where.reason);
    sandbox->config_has_time = json_member(&config, 0, "unix_ns") != 0;
    uint32_t server = json_member(&config, 0, "server");
    uint32_t stdio = server ? json_member(&config, server, "stdio") : 0;
    sandbox->log_drops = stdio && json_string_equals(&config, stdio, "log");
    sandbox->steers_terminal = stdio && json_string_equals(&config, stdio, "tty");
    sandbox->output.escape = sandbox->output.terminal && !sandbox->steers_terminal;
    sandbox->error.escape = sandbox->error.terminal;
    return 0;
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
        .file_server = &sandbox->file_server,
        .broker = &sandbox->broker,
        .wsl = sandbox->options.wsl ? &sandbox->wsl : NULL,
        .way_in_secret = sandbox->way_in.secret,
        .id = id,
        .stdio = sandbox->terminal.present ? BOOT_TTY : BOOT_PIPE,
        .overlay = sandbox->overlay,
        .overlay_length = (size_t)sandbox->overlay_length,
    };
    if (!terminal_size(&parts.rows, &parts.columns))
        parts.rows = parts.columns = 0;
    sandbox->config = malloc(BOOT_CONFIG_SIZE);
    if (!sandbox->config)
        return failure_errno(why, ENOMEM, "boot configuration");
    sandbox->config_length = boot_config_write(sandbox->config, &parts, why);
    return sandbox->config_length < 0 ? sandbox->config_length : look_at_config(sandbox, why);
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
    {"signals", sandbox_watch_signals},
    {"config", step_config},
    {"runtime-folder", step_run_folder},
    {"machine", step_machine},
    {"mounts", step_mounts},
    {"files", step_files}, /* not before: a guest may have put a link in the place of one */
    {"account", step_account},
    {"vsock", step_vsock},
    {"broker", step_broker},
    {"way-in", step_way_in},
    {"file-server", step_file_server},
    {"qemu", step_qemu},
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
    int64_t seconds = sandbox->accelerator.kvm ? HELLO_SECONDS_KVM : HELLO_SECONDS_TCG;
    sandbox->now = io_monotonic_ns();
    sandbox->hello_by = sandbox->now + seconds * 1000000000LL;
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
