/* Stage `relay`: listeners, the relay process and its table of forwards. */
#ifndef INIT_RELAY_RELAY_START_H
#define INIT_RELAY_RELAY_START_H

#include <sys/types.h>

#include "init/config/boot_config.h"
#include "init/machine/account.h"
#include "init/relay/relay_listen.h"

#define AGENT_PATH "/usr/libexec/codev/codev-agent"

struct relay_process {
    pid_t pid;     /* 0 when not running */
    int config_fd; /* our end of its pipe, for further records; closing it ends the relay */
    int binary_fd; /* the opened program; -1 before the first start */
    enum relay_side side;
    /* WSL: this side's listener in the relays' folder, and that folder's namespace
     * (relay_folder.h); else -1 */
    int folder_listener_fd, folder_namespace_fd;
};

/* Makes the listeners (8788 on IPv4 and IPv6 when there is egress, DNS on port 53, the way in),
 * starts codev-agent as the account codev-relay in its cgroup, sends the table. A further call
 * restarts it with the same listeners. A way in with port 0 gets its port filled in. */
int relay_start(struct relay_process *relay, struct boot_config *config, int cgroup_fd,
                struct failure *why);

/* Sends a further record after `config->relay` changed (same listeners). */
int relay_update(struct relay_process *relay, const struct boot_config *config,
                 struct failure *why);

void relay_stop(struct relay_process *relay);

#endif
