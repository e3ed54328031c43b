/* Rewrites the Location of a redirect to an address that works in the guest.
 *
 * The broker follows no redirect. A Location that lies under a rule becomes GUEST-URL/NAME/..., so
 * that the client in the guest can follow it through that rule. Any other becomes
 * GUEST-URL/_undeclared/HOST, where the broker answers which rule is missing. A Location never
 * becomes the gateway's route: no upstream may send a client to the route that carries the
 * credential, not even the gateway itself.
 *
 * The value is resolved against the request's URL (RFC 3986 section 5), so relative references are
 * treated like absolute ones. Then parts are compared, not text: scheme, host without case, port,
 * and a path prefix that ends at a segment boundary. Of several rules the longest prefix wins, then
 * the rule of the request, then the file's order.
 */
#ifndef HOST_BROKER_RULES_LOCATION_H
#define HOST_BROKER_RULES_LOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include "host-broker/base/slice.h"
#include "host-broker/http/upstream_url.h"
#include "host-broker/rules/rules.h"

#define LOCATION_MAX 16384 /* longer values are dropped */

struct location_context {
    const char *guest_url; /* without a trailing slash */
    const struct rules *rules;
    const struct rule *rule;           /* of the request, NULL for the gateway */
    const struct upstream_url *origin; /* of the request's URL */
    struct slice path;                 /* of the request's URL, with query (upstream_url_join) */
    bool declared_only;                /* a reference that lies under no rule stays as it is */
};

/* Writes the new value with a NUL and returns its length; 0 when the value stays as it is (it is no
 * http or https reference; with declared_only also when it lies under no rule); -ENOSPC or
 * -EMSGSIZE when it is too long, and the field is to be dropped. */
int location_rewrite(char *out, size_t size, struct slice location,
                     const struct location_context *context);

#endif
