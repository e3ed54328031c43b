/* Which answers are rewritten: one table of paths and content types.
 *
 * Before the request is sent, path and Accept select the rows that are possible. If there are any,
 * the upstream is asked for the document without compression (Accept-Encoding: identity), and the
 * guest's tags are restored (rewrite_etag.h). When the head of the answer is there, its content
 * type selects among these rows. All other answers pass unchanged: files, signed indices, checksum
 * databases, other pages.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_ROUTE_H
#define HOST_BROKER_REWRITE_REWRITE_ROUTE_H

#include <stdint.h>

#include "host-broker/base/slice.h"
#include "host-broker/http/request_head.h"
#include "host-broker/rewrite/rewrite_format.h"

/* The rows (as bits) that are possible for a request. `rest` is the path under the rule, `path` the
 * whole path at the upstream, both without query. */
uint32_t rewrite_route_candidates(const struct request_head *head, struct slice rest,
                                  struct slice path);

/* The format of the answer, by the value of its Content-Type (empty: none). */
enum rewrite_format rewrite_route_choose(uint32_t candidates, struct slice content_type);

#endif
