/* Stage `relay`: the listeners of a relay, and its table of forwards.
 *
 * They depend on where the relay runs: a machine has one, WSL has two that are connected by sockets
 * (relay_folder.h). The table exists once in each process, which runs one relay.
 */
#ifndef INIT_RELAY_RELAY_LISTEN_H
#define INIT_RELAY_RELAY_LISTEN_H

#include "common/wire/relay_config.h"
#include "init/config/boot_config.h"

#define RELAY_LISTENERS_MAX (RELAY_FORWARDS_MAX + RELAY_DNS_MAX + 1)
#define RELAY_FIRST_FD 3 /* the relay's number for the first listener */

enum relay_side {
    RELAY_SIDE_MACHINE, /* both ends: broker and way in over vsock */
    RELAY_SIDE_INSIDE,  /* WSL, in the sandbox: to the other one, and from it to the server */
    RELAY_SIDE_OUTSIDE, /* WSL, in the distribution's network: to the broker, and the way in */
};

struct relay_table {
    int listeners[RELAY_LISTENERS_MAX]; /* ours; the relay's number is RELAY_FIRST_FD + index */
    unsigned listener_count;
    struct relay_config config;
};

/* Makes the listeners of this side. `folder_listener_fd` is its listener in the relays' folder,
 * which is taken over, or -1 in a machine. A way in with port 0 gets its port filled in. 0 or a
 * negative errno with a reason. */
int relay_listen(struct relay_table *table, enum relay_side side, int folder_listener_fd,
                 struct boot_config *config, struct failure *why);

/* Puts the broker's addresses and pin, the token and the way in's secret into the table, which
 * holds the secrets only until relay_table_wipe: a child of init that executes nothing inherits no
 * copy. */
void relay_table_fill(struct relay_table *table, const struct boot_config *config);
void relay_table_wipe(struct relay_table *table);

#endif
