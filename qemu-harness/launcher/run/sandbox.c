/* The empty sandbox, and its end, whatever way it came: everything that was made is taken back. */
#include "qemu-harness/launcher/run/sandbox.h"

#include <stdlib.h>

#include "common/os/cleanup.h"

#define CHILDREN_GRACE_MS 2000

void sandbox_init(struct sandbox *sandbox)
{
    sandbox->folder.lock = -1;
    sandbox->qemu.kernel = sandbox->qemu.image = sandbox->qemu.memory = -1;
    sandbox->vsock.device = -1;
    sandbox->broker.life = sandbox->broker.out = sandbox->broker.err = -1;
    sandbox->control.listener = sandbox->control.fd = -1;
    sandbox->console.fd = sandbox->console.guest_fd = sandbox->console.file = -1;
    sandbox->diagnostics = sandbox->console;
    sandbox->output.fd = sandbox->error.fd = -1;
    sandbox->way_in.unix_listener = sandbox->way_in.tcp_listener = -1;
    sandbox->events.fd = sandbox->signals = -1;
    sandbox->kill_at = sandbox->hello_by = INT64_MAX;
    for (unsigned i = 0; i < OPTION_REPEAT_MAX; i++)
        sandbox->file_server.connections[i] = -1;
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
    qemu_close(&sandbox->qemu);
    wsl_close(&sandbox->wsl);
    file_server_release(&sandbox->file_server);
    mount_table_close(&sandbox->mounts);
    fd_close(&sandbox->vsock.device);
    fd_close(&sandbox->signals);
    run_folder_remove(&sandbox->folder);
    events_close(&sandbox->events);
    if (sandbox->config)
        secret_wipe(sandbox->config, BOOT_CONFIG_SIZE);
    free(sandbox->config);
    free(sandbox->overlay);
    sandbox->config = sandbox->overlay = NULL;
}
