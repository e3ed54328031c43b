/* Whether a record from codev-init can be served. Pure functions.
 *
 * Both programs come from one build, so these checks find mistakes, not attacks; but what would
 * leave the token unprotected (a broker over TCP without a pinned key, a pin that nothing checks)
 * is refused, never ignored: a token in the clear on a shared network would be worse than no relay.
 */
#ifndef AGENT_CONFIG_CHECK_H
#define AGENT_CONFIG_CHECK_H

#include "common/os/failure.h"
#include "common/wire/relay_config.h"

/* 0, or -EINVAL with a reason that names the forward. */
int config_check(const struct relay_config *config, struct failure *why);

/* Takes dial addresses and secrets of a further record. Listeners, roles, DNS sockets and the
 * table of routes must be those of the running table. 0, or -EINVAL with a reason, and then
 * `current` is untouched. */
int config_replace(struct relay_config *current, const struct relay_config *next,
                   struct failure *why);

#endif
