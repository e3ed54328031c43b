/* The functions of the stages that differ in WSL from those in start.c. */
#include "init/start_wsl.h"

#include <errno.h>
#include <string.h>

#include "init/folders/mounts.h"
#include "init/host/events.h"
#include "init/machine/base.h"
#include "init/machine/network.h"
#include "init/sandbox.h"
#include "init/start.h"
#include "init/wsl/wsl_cgroups.h"
#include "init/wsl/wsl_link.h"
#include "init/wsl/wsl_progress.h"

static struct wsl_message message; /* one at a time */

int start_wsl_base(struct sandbox *sandbox, struct failure *why)
{
    (void)sandbox;
    return base_mount_in_wsl(why);
}

int start_wsl_mounts(struct sandbox *sandbox, struct failure *why)
{
    mounts_outside(sandbox->outside_fd);
    return start_mounts(sandbox, why);
}

/* PID 1 was started in a network namespace of its own; its interfaces are checked all the same. */
int start_wsl_network(struct sandbox *sandbox, struct failure *why)
{
    (void)sandbox;
    return network_prepare(why);
}

int start_wsl_cgroups(struct sandbox *sandbox, struct failure *why)
{
    struct failure warning;

    wsl_progress_group(sandbox->config.id);
    int result = wsl_cgroups_create(&sandbox->cgroups, sandbox->own_cgroup_fd, &sandbox->config,
                                    &warning, why);
    if (result == -EEXIST)
        wsl_progress_group(""); /* the group belongs to another sandbox */
    if (result == 0 && warning.text[0] != '\0')
        (void)event_warning(&sandbox->control, warning.text);
    return result;
}

/* Starts the outer relay, then the inner one. */
int start_wsl_relay(struct sandbox *sandbox, struct failure *why)
{
    struct boot_config *config = &sandbox->config;

    memset(&message, 0, sizeof(message));
    message.kind = WSL_START;
    config->way_in.present = config->way_in.present && config->server.port != 0;
    message.relay = config->relay;
    message.way_in = config->way_in;
    int result = wsl_link_ask(sandbox->outside_fd, &message, NULL, why);
    if (result < 0)
        return result;
    config->way_in.listen = message.way_in.listen;
    sandbox->witness_count = message.witness_count;
    memcpy(sandbox->witnesses, message.witnesses, sizeof(sandbox->witnesses));
    return relay_start(&sandbox->relay, config, sandbox->cgroups.relay_fd, why);
}

/* The self-test reaches no listener outside, and no listener outside has received anything. */
int start_wsl_self_test(struct sandbox *sandbox, struct failure *why)
{
    int result = start_self_test(sandbox, why);

    if (result < 0)
        return result;
    memset(&message, 0, sizeof(message));
    message.kind = WSL_TOUCHED;
    result = wsl_link_ask(sandbox->outside_fd, &message, NULL, why);
    if (result == 0 && message.touched)
        return failure_set(why, EPERM,
                           "a datagram of the self-test reached a listener outside the sandbox");
    return result;
}
