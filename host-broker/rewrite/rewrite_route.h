/* Which answers are rewritten: one table of paths and content types.
 *
 * Before the request is sent, path and Accept tell which rows may come to pass: then the upstream is
 * asked for the document as it is (Accept-Encoding: identity) and the guest's cached tags are restored
 * (rewrite_etag.h). When the answer's head is there, its content type decides among those rows. Everything
 * else is none of our business: files, indices with signatures, checksum databases, pages of other kinds.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_ROUTE_H
#define HOST_BROKER_REWRITE_REWRITE_ROUTE_H

#include <stdint.h>

#include "host-broker/base/slice.h"
#include "host-broker/http/request_head.h"
#include "host-broker/rewrite/rewrite_format.h"

/* The rows (as bits) that a request may come under. `rest` is the path under the rule, `path` the whole
 * path at the upstream, both without query. */
uint32_t rewrite_route_candidates(const struct request_head *head, struct slice rest,
                                  struct slice path);

/* What the answer is, by the value of its Content-Type (empty for none). */
enum rewrite_format rewrite_route_choose(uint32_t candidates, struct slice content_type);

#endif
