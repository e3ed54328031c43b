/* Which fields pass, in both directions (design, section 8): const tables.
 *
 * Three lists for requests: what never passes (hop-by-hop fields of RFC 9110 section 7.6.1, those that
 * Connection names, and framing, which is made anew), and what does not pass to the gateway besides:
 * everything that could be or stand beside a credential, or tell the gateway of another client, path or
 * method. A named rule gets no credential of ours and the guest's own Authorization passes. Names are
 * compared without case, and with `_` as `-`, since some servers read both as the same variable.
 */
#ifndef HOST_BROKER_HTTP_HEADER_POLICY_H
#define HOST_BROKER_HTTP_HEADER_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "host-broker/http/field.h"
#include "host-broker/http/request_head.h"

enum route_kind { ROUTE_GATEWAY, ROUTE_NAMED, ROUTE_KIND_COUNT };

extern const char *const route_kind_names[ROUTE_KIND_COUNT]; /* "gateway", "rule" */

/* True when the request's field passes to the upstream. `credential_name` is the field that carries the
 * gateway's credential (used for ROUTE_GATEWAY). Host, Content-Length, Transfer-Encoding and Expect
 * never pass: they are set anew or answered here. */
bool header_policy_request(enum route_kind kind, struct slice credential_name,
                           const struct request_head *head, const struct field *field);

/* True when the answer's field passes to the guest. `connection` is the value of the answer's Connection
 * field (empty for none): what it names does not pass. Several Connection fields: joined by the caller
 * with a comma, or asked one by one. Location passes here; rewrite it with location_rewrite. */
bool header_policy_response(enum route_kind kind, struct slice connection,
                            const struct field *field);

/* True when the field is still true of an answer whose links were rewritten: not those that tell its
 * length, parts, digest or date (by which a copy made under other rules would be taken for fresh). ETag is
 * judged by rewrite_etag.h. */
bool header_policy_rewritten(const struct field *field);

/* True when the field may carry the gateway's credential (--gateway-auth header:NAME): a token that no
 * table reserves for framing or the connection. */
bool header_policy_credential_name(struct slice name);

#endif
