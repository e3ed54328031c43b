/* Where a redirect points, seen from inside (design, section 8, "redirects").
 *
 * The broker follows no redirect. A Location that lies under a rule becomes GUEST-URL/NAME/..., so that
 * the client inside can follow it through that rule; one that points anywhere else becomes
 * GUEST-URL/_undeclared/HOST, which is answered with the name of the rule that is missing. The gateway is
 * never such a target: no upstream may send a client to the place that carries the credential, nor may
 * the gateway send it to itself.
 *
 * The value is resolved against the address that was asked (RFC 3986 section 5), so relative ones are
 * judged like absolute ones; then parts are compared, never text: scheme, host without case, effective
 * port, and a path prefix that ends at a segment boundary. Of several rules the longest prefix wins, then
 * the rule the request itself used, then the file's order.
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
    const struct rule *rule;           /* the request's own, NULL for the gateway */
    const struct upstream_url *origin; /* where the request went */
    struct slice path;                 /* its path there, with query (upstream_url_join's result) */
    bool declared_only;                /* what lies under no rule stays as it is */
};

/* Writes the value to pass on, with a NUL, and returns its length; 0 when it stays as it is (it is no
 * http or https reference, so nothing inside can follow it anyway; with declared_only also when it lies
 * under no rule); -ENOSPC or -EMSGSIZE when it is too
 * long: the field is then dropped. */
int location_rewrite(char *out, size_t size, struct slice location,
                     const struct location_context *context);

#endif
