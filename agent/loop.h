/* The relay's event loop: one epoll set over the configuration pipe, the listeners, the connections
 * and the DNS stub.
 *
 * At each wake-up the clock is read once, every event is dispatched by its typed reference, due
 * timers run, and the sweep frees the connections that were marked.
 */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include "agent/relay.h"

/* Prepares a zeroed relay with a configuration that config_check accepted; config_fd is watched for
 * further records. 0 or a negative errno with a reason. */
int loop_init(struct relay *relay, const struct relay_config *config, int config_fd,
              struct failure *why);

/* Runs until the configuration pipe ends (0), or an error occurs that no single connection caused
 * (a negative errno with a reason). */
int loop_run(struct relay *relay, struct failure *why);

#endif
