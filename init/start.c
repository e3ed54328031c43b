/* The functions of the stages: each calls the module that does the work and keeps the result for
 * later stages. The module documents the stage. */
#include "init/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/os/secret.h"
#include "init/folders/mounts.h"
#include "init/host/control_dial.h"
#include "init/host/events.h"
#include "init/machine/base.h"
#include "init/machine/machine.h"
#include "init/machine/network.h"
#include "init/machine/network_hardware.h"
#include "init/sandbox.h"
#include "init/server/environment.h"
#include "init/supervise.h"

/* Descriptors 0 to 2 of init itself become /dev/null, so that no other file gets these numbers. */
static int close_stdio(struct failure *why)
{
    CLEANUP_FD int sink = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (sink < 0)
        return failure_errno(why, errno, "open /dev/null");
    for (int number = 0; number < 3; number++)
        if (dup2(sink, number) < 0)
            return failure_errno(why, errno, "descriptor %d", number);
    return 0;
}

int start_base(struct sandbox *sandbox, struct failure *why)
{
    int result = base_mount(why);

    (void)sandbox;
    if (result < 0)
        return result;
    result = io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", 0, 0, "-1000");
    if (result < 0)
        return failure_errno(why, -result, "write oom_score_adj");
    return close_stdio(why);
}

/* The first line from the host, within what is left of CONTROL_CONFIG_TIMEOUT_MS. */
static int await_line(struct control *control, int64_t deadline, char **line, size_t *length,
                      struct failure *why)
{
    int result;

    while ((result = control_next_line(control, line, length)) == 0) {
        (void)control_flush(control);
        if (!io_wait(control->fd, POLLIN, deadline))
            return failure_set(why, ETIMEDOUT, "no boot configuration within %d s",
                               CONTROL_CONFIG_TIMEOUT_MS / 1000);
        if (control_receive(control) < 0)
            return failure_set(
                why, EPIPE, "the host closed the channel before the boot configuration was whole");
    }
    if (result < 0)
        return failure_set(why, -result, "the boot configuration is longer than %d bytes",
                           CONTROL_LINE_MAX);
    return 0;
}

int start_config(struct sandbox *sandbox, struct failure *why)
{
    const int64_t begin = io_monotonic_ns();
    const int64_t deadline = begin + CONTROL_CONFIG_TIMEOUT_MS * MILLISECONDS;
    char *line;
    size_t length;
    int result = 0;

    if (sandbox->place == PLACE_MACHINE) /* in WSL it is connected already */
        result = control_dial(&sandbox->control, deadline, why);
    if (result == 0)
        result = await_line(&sandbox->control, deadline, &line, &length, why);
    if (result < 0)
        return result;
    result = boot_config_parse(&sandbox->config, sandbox->place, line, length, why);
    secret_wipe(line, length);
    sandbox->time_asked_ns = begin;
    return result;
}

int start_clock(struct sandbox *sandbox, struct failure *why)
{
    int64_t age_max_ns = io_monotonic_ns() - sandbox->time_asked_ns;

    if (age_max_ns > CLOCK_AHEAD_MAX_NS) /* the host may have been long in coming */
        age_max_ns = CLOCK_AHEAD_MAX_NS;
    return clock_set(sandbox->config.unix_ns, age_max_ns, why);
}

int start_hostname(struct sandbox *sandbox, struct failure *why)
{
    if (hostname_set(sandbox->config.hostname, why) != 0)
        (void)event_warning(&sandbox->control, why->text);
    return 0; /* never fatal */
}

int start_account(struct sandbox *sandbox, struct failure *why)
{
    return account_apply(&sandbox->config, &sandbox->account, why);
}

int start_mounts(struct sandbox *sandbox, struct failure *why)
{
    sandbox->mounted = true; /* from now on the end has to undo mounts */
    return mounts_apply(&sandbox->config, &sandbox->account, why);
}

int start_network(struct sandbox *sandbox, struct failure *why)
{
    (void)sandbox;
    int result = network_check_hardware("/sys", why);
    return result < 0 ? result : network_prepare(why);
}

int start_firewall(struct sandbox *sandbox, struct failure *why)
{
    return nft_firewall_load(&sandbox->firewall, why);
}

int start_cgroups(struct sandbox *sandbox, struct failure *why)
{
    return cgroups_create(&sandbox->cgroups, &sandbox->config, why);
}

int start_relay(struct sandbox *sandbox, struct failure *why)
{
    return relay_start(&sandbox->relay, &sandbox->config, sandbox->cgroups.relay_fd, why);
}

int start_self_test(struct sandbox *sandbox, struct failure *why)
{
    return self_test_run(&sandbox->config, &sandbox->account, sandbox->cgroups.server_fd,
                         sandbox->relay.pid, sandbox->witnesses, sandbox->witness_count,
                         &sandbox->report, why);
}

int start_server(struct sandbox *sandbox, struct failure *why)
{
    static struct permissions permissions;
    char **environment;
    int result = permissions_decide(&sandbox->config, &sandbox->account, &permissions, why);

    if (result == 0 && permissions.warning[0] != '\0')
        (void)event_warning(&sandbox->control, permissions.warning);
    if (result == 0)
        result =
            environment_build(&sandbox->config, &sandbox->account, &permissions, &environment, why);
    if (result == 0)
        result = sandbox_file_write(&sandbox->config, &permissions, why);
    if (result == 0)
        result = server_start(&sandbox->server, &sandbox->io, &sandbox->config, &sandbox->account,
                              sandbox->cgroups.server_fd, environment, why);
    if (result < 0)
        return result;
    supervise_begin(sandbox);
    (void)supervise_until_ready(sandbox);
    return 0;
}
