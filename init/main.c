/* codev-init: PID 1 of the sandbox.
 *
 * It starts the sandbox in stages (stage.h), each of which fails closed, runs one server in it as
 * an ordinary account, and ends with it. It is the only process without limits, and it parses
 * nothing that other processes of the guest or the network sent: its input is the kernel's files
 * and the host's commands on the control channel.
 *
 * In a virtual machine PID 1 may never exit: every function that ends the sandbox powers the
 * machine off (shutdown.h). In WSL (`--wsl`) there is also a process outside the sandbox
 * (outside.h), and PID 1's exit ends the sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdnoreturn.h>
#include <string.h>
#include <unistd.h>

#include "common/os/io.h"
#include "common/os/memory.h"
#include "common/wire/protocol.h"
#include "init/host/events.h"
#include "init/outside.h"
#include "init/sandbox.h"
#include "init/shutdown.h"
#include "init/start.h"
#include "init/start_wsl.h"
#include "init/supervise.h"
#include "init/system/signals.h"
#include "init/wsl/wsl_progress.h"

static struct sandbox *sandbox; /* half a MiB, in its own mapping */

static stage_function *const stage_functions[STAGE_COUNT] = {
    [STAGE_BASE] = start_base,           [STAGE_CONFIG] = start_config,
    [STAGE_CLOCK] = start_clock,         [STAGE_HOSTNAME] = start_hostname,
    [STAGE_ACCOUNT] = start_account,     [STAGE_MOUNTS] = start_mounts,
    [STAGE_NETWORK] = start_network,     [STAGE_FIREWALL] = start_firewall,
    [STAGE_CGROUPS] = start_cgroups,     [STAGE_RELAY] = start_relay,
    [STAGE_SELF_TEST] = start_self_test, [STAGE_SERVER] = start_server,
};

/* WSL: all distributions share the kernel, its clock and its hardware. */
static stage_function *const wsl_functions[STAGE_COUNT] = {
    [STAGE_BASE] = start_wsl_base,
    [STAGE_CONFIG] = start_config,
    [STAGE_CLOCK] = NULL,
    [STAGE_HOSTNAME] = start_hostname,
    [STAGE_ACCOUNT] = start_account,
    [STAGE_MOUNTS] = start_wsl_mounts,
    [STAGE_NETWORK] = start_wsl_network,
    [STAGE_FIREWALL] = start_firewall,
    [STAGE_CGROUPS] = start_wsl_cgroups,
    [STAGE_RELAY] = start_wsl_relay,
    [STAGE_SELF_TEST] = start_wsl_self_test,
    [STAGE_SERVER] = start_server,
};

static void report_stage(struct sandbox *done, enum stage_id stage, int64_t nanoseconds)
{
    (void)event_stage(&done->control, stage_names[stage], nanoseconds);
    (void)control_flush(&done->control);
    wsl_progress_stage(stage);
}

static const struct stage_plan machine_plan = {
    .functions = stage_functions,
    .done = report_stage,
};

static const struct stage_plan wsl_plan = {
    .functions = wsl_functions,
    .done = report_stage,
};

/* Without a console the kernel starts PID 1 without descriptors: the first file that is opened
 * would become standard input. */
static void reserve_stdio(void)
{
    int fd;

    do
        fd = open("/", O_PATH | O_CLOEXEC);
    while (fd >= 0 && fd < 2);
    if (fd > 2)
        close(fd);
}

/* Sets the descriptors that are not open yet to -1. */
static void mark_absent(void)
{
    sandbox->cgroups = (struct cgroups){.server_fd = -1, .relay_fd = -1};
    sandbox->relay = (struct relay_process){
        .config_fd = -1, .binary_fd = -1, .folder_listener_fd = -1, .folder_namespace_fd = -1};
    sandbox->signal_fd = sandbox->outside_fd = sandbox->own_cgroup_fd = -1;
    sandbox->io.input.fd = -1;
    for (int stream = 0; stream < OUTPUT_STREAM_COUNT; stream++)
        sandbox->io.outputs[stream].fd = -1;
}

static void begin(void)
{
    struct failure why;

    sandbox->started_ns = io_monotonic_ns();
    shutdown_guard_faults();
    sandbox->signal_fd = signals_open(&why);
    if (sandbox->signal_fd < 0)
        sandbox_abort("signals cannot be set up: power off");
    (void)event_hello(&sandbox->control);
}

static void run_stages(const struct stage_plan *plan)
{
    enum stage_id failed;
    struct failure why;

    if (stage_run_all(plan, sandbox, &failed, &why) < 0)
        sandbox_fail(sandbox, failed, &why);
}

static void report_ready(void)
{
    if (sandbox->phase == PHASE_RUNNING)
        (void)event_ready(&sandbox->control, io_monotonic_ns() - sandbox->started_ns,
                          &sandbox->config.way_in, &sandbox->report);
}

static noreturn void run(const struct stage_plan *plan)
{
    begin();
    run_stages(plan);
    report_ready();
    supervise_until_end(sandbox);
    sandbox_end(sandbox);
}

/* PID 1 of a sandbox in WSL. */
static void run_in_wsl(void)
{
    run(&wsl_plan);
}

/* Started neither as PID 1 nor with --wsl. */
static int refuse(void)
{
    static const char text[] =
        "codev-init is PID 1 of a virtual machine; in WSL: codev-init --wsl, as root\n";

    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    return 64; /* EX_USAGE */
}

static int print_version(void)
{
    static const char text[] = "codev-init " CODEV_VERSION "\n";

    return write(STDOUT_FILENO, text, sizeof(text) - 1) < 0;
}

int main(int argc, char **argv)
{
    bool machine = getpid() == 1; /* its arguments are then those of the kernel's command line */

    if (!machine && argc == 2 && strcmp(argv[1], "--version") == 0)
        return print_version();
    if (!machine && (argc != 2 || strcmp(argv[1], "--wsl") != 0))
        return refuse();
    reserve_stdio();
    sandbox = memory_reserve(sizeof(*sandbox));
    if (!sandbox || control_open(&sandbox->control) < 0)
        sandbox_abort("no memory: power off");
    mark_absent();
    if (machine)
        run(&machine_plan);
    sandbox->place = PLACE_WSL;
    shutdown_by_exit();
    return outside_run(sandbox, run_in_wsl);
}
