/* Rewrites the Link header (RFC 8288) for the guest: a target that lies under a rule becomes
 * GUEST-URL/NAME/..., resolved like Location. All other targets, the parameters and malformed parts
 * stay.
 */
#ifndef HOST_BROKER_RULES_LINK_FIELD_H
#define HOST_BROKER_RULES_LINK_FIELD_H

#include "host-broker/rules/location.h"

/* Writes the new value, without a NUL, and returns its length, or -ENOSPC. */
int link_field_rewrite(char *out, size_t size, struct slice value,
                       const struct location_context *context);

#endif
