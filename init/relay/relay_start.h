/* Stage `relay`: listeners, the agent process and its table of forwards. */
#ifndef INIT_RELAY_RELAY_START_H
#define INIT_RELAY_RELAY_START_H

#include <sys/types.h>

#include "init/config/boot_config.h"
#include "init/machine/account.h"
#include "init/relay/relay_listen.h"

#define AGENT_PATH "/usr/libexec/codev/codev-agent"

struct relay_process {
    pid_t pid;     /* 0 when not running */
    int config_fd; /* our end of its pipe: further records; closing it ends the agent */
    int binary_fd; /* the opened program, so that a restart does not depend on a path; -1 before the first start */
    enum relay_side side;
    int folder_listener_fd,
        folder_namespace_fd; /* WSL: this side of the agents' folder (relay_folder.h); else -1 */
};

/* Makes the listeners (8788 on v4 and v6 when there is egress, DNS on port 53, the way in), starts
 * the agent as codev-relay in its group through drop_to_account, sends the table. On a restart call
 * it again: listeners are kept in static storage. A way in with port 0 learns the port that it
 * has. */
int relay_start(struct relay_process *relay, struct boot_config *config, int cgroup_fd,
                struct failure *why);

/* Sends a further record after `config->relay` changed (same listeners). */
int relay_update(struct relay_process *relay, const struct boot_config *config,
                 struct failure *why);

void relay_stop(struct relay_process *relay);

#endif
