/* Checks of the records from codev-init. Pure functions.
 *
 * Both programs come from one build, so the checks find bugs, not attacks. A record that would
 * leave the token unprotected (a broker over TCP without a pinned key, a pin that nothing checks)
 * is refused: a token in the clear on a shared network would be worse than no relay.
 */
#ifndef AGENT_CONFIG_CHECK_H
#define AGENT_CONFIG_CHECK_H

#include "common/os/failure.h"
#include "common/wire/relay_config.h"

/* 0, or -EINVAL with a reason that names the forward. */
int config_check(const struct relay_config *config, struct failure *why);

/* Takes over the dial addresses and secrets of a later record. Its listeners, roles, DNS sockets
 * and table of routes must equal those of the running table. 0, or -EINVAL with a reason, and then
 * `current` is untouched. */
int config_replace(struct relay_config *current, const struct relay_config *next,
                   struct failure *why);

#endif
