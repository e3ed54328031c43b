/* The Link header (RFC 8288), seen from inside: a target that lies under a rule becomes GUEST-URL/NAME/...,
 * resolved as Location is; every other target, the parameters and what is malformed stay as they are.
 */
#ifndef HOST_BROKER_RULES_LINK_FIELD_H
#define HOST_BROKER_RULES_LINK_FIELD_H

#include "host-broker/rules/location.h"

/* Writes the value to pass on, without a NUL, and returns its length, or -ENOSPC. */
int link_field_rewrite(char *out, size_t size, struct slice value,
                       const struct location_context *context);

#endif
