/* Stage `relay`: the listeners of an agent, and its table of forwards.
 *
 * Which they are depends on where the agent runs: in a machine there is one, in WSL a pair that
 * meets in a folder of its own (relay_folder.h). The table exists once in each process: init runs
 * one agent.
 */
#ifndef INIT_RELAY_RELAY_LISTEN_H
#define INIT_RELAY_RELAY_LISTEN_H

#include "common/wire/relay_config.h"
#include "init/config/boot_config.h"

#define RELAY_LISTENERS_MAX (RELAY_FORWARDS_MAX + RELAY_DNS_MAX + 1)
#define RELAY_FIRST_FD 3 /* the agent's number of the first listener */

enum relay_side {
    RELAY_SIDE_MACHINE, /* both ends: broker and way in over vsock */
    RELAY_SIDE_INSIDE,  /* WSL, in the sandbox: to the other one, and from it to the server */
    RELAY_SIDE_OUTSIDE, /* WSL, in the distribution's network: to the broker, and the way in */
};

struct relay_table {
    int listeners[RELAY_LISTENERS_MAX]; /* ours; the agent's number is RELAY_FIRST_FD + index */
    unsigned listener_count;
    struct relay_config config;
};

/* Makes the listeners of this side; `folder_listener_fd` is its listener in the agents' folder
 * (taken over), -1 in a machine. The way in's port is filled in where it was 0. 0 or a negative
 * errno with a reason. */
int relay_listen(struct relay_table *table, enum relay_side side, int folder_listener_fd,
                 struct boot_config *config, struct failure *why);

/* Puts the broker's addresses and pin, the token and the way in's secret into the table, which
 * holds the secrets only until relay_table_wipe: a child of init that executes nothing inherits no
 * copy. */
void relay_table_fill(struct relay_table *table, const struct boot_config *config);
void relay_table_wipe(struct relay_table *table);

#endif
