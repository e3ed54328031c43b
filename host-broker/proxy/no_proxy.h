/* NO_PROXY: which upstreams are asked without a proxy.
 *
 * curl's rules (lib/noproxy.c): entries parted by commas or white space; `*` is everything; a name means
 * itself and every name below it, a leading dot makes no difference; an address is itself; ADDRESS/BITS is
 * a network. Names are never resolved, so a network matches upstreams that are written as addresses.
 *
 * Beyond curl, as others have it: an entry with a port (HOST:PORT, [IPv6]:PORT) means that port only, and
 * *.NAME means the names below NAME. An entry that is none of these matches nothing.
 */
#ifndef HOST_BROKER_PROXY_NO_PROXY_H
#define HOST_BROKER_PROXY_NO_PROXY_H

#include <stdbool.h>

#include "host-broker/http/upstream_url.h"

/* True when an entry of the list (NULL: an empty one) means the upstream. */
bool no_proxy_matches(const char *list, const struct upstream_url *url);

#endif
