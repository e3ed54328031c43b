/* Which header fields pass, in both directions: const tables.
 *
 * On every route these fields of a request do not pass: hop-by-hop fields (RFC 9110 section 7.6.1),
 * fields that Connection names, and framing, which the broker writes itself. To the gateway neither
 * pass fields that could be a credential or go with one, and fields that state another client, path
 * or method. A named rule gets no credential of the broker, and the guest's own Authorization
 * passes. Names are compared without case and with `_` as `-`, because some servers map both to the
 * same variable.
 */
#ifndef HOST_BROKER_HTTP_HEADER_POLICY_H
#define HOST_BROKER_HTTP_HEADER_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "host-broker/http/field.h"
#include "host-broker/http/request_head.h"

enum route_kind { ROUTE_GATEWAY, ROUTE_NAMED, ROUTE_KIND_COUNT };

extern const char *const route_kind_names[ROUTE_KIND_COUNT]; /* "gateway", "rule" */

/* True when the request's field passes to the upstream. `credential_name` is the field that carries
 * the gateway's credential (used for ROUTE_GATEWAY). Host, Content-Length, Transfer-Encoding and
 * Expect never pass: the broker writes them itself, or answers them. */
bool header_policy_request(enum route_kind kind, struct slice credential_name,
                           const struct request_head *head, const struct field *field);

/* True when the answer's field passes to the guest. `connection` is the value of the answer's
 * Connection field (empty: none): fields that it names do not pass. The caller joins several
 * Connection fields with commas, or calls this once for each. Location passes; location_rewrite
 * rewrites it. */
bool header_policy_response(enum route_kind kind, struct slice connection,
                            const struct field *field);

/* True when the field stays correct after links were rewritten. False for fields about length,
 * ranges, digests and for Last-Modified, by which a copy made under other rules would be taken for
 * fresh. ETag is replaced by rewrite_etag.h. */
bool header_policy_rewritten(const struct field *field);

/* True when the field may carry the gateway's credential (--gateway-auth header:NAME): a token that
 * is not reserved for framing or the connection. */
bool header_policy_credential_name(struct slice name);

#endif
