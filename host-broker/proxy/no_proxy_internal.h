/* NO_PROXY: the upstreams that are reached without a proxy.
 *
 * The rules are curl's (lib/noproxy.c): entries are separated by commas or white space; `*` matches
 * everything; a name, with or without a leading dot, matches itself and every name below it; an
 * address matches itself; ADDRESS/BITS matches a network. Names are never resolved, so a network
 * matches only upstreams that are written as addresses.
 *
 * Besides, as other programs do: an entry with a port (HOST:PORT, [IPv6]:PORT) matches only that
 * port, and *.NAME matches only the names below NAME. Other entries match nothing.
 */
#ifndef HOST_BROKER_PROXY_NO_PROXY_INTERNAL_H
#define HOST_BROKER_PROXY_NO_PROXY_INTERNAL_H

#include <stdbool.h>

#include "host-broker/http/upstream_url.h"

/* True when an entry of the list (NULL: an empty list) matches the upstream. */
bool no_proxy_matches(const char *list, const struct upstream_url *url);

#endif
