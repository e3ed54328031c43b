/* The URL of an upstream, from a rule or --gateway-url: parsed once, strictly, and then used in its
 * parts only.
 *
 * Accepted: http or https, a host (a name of ordinary labels, an IPv4 literal of four decimal
 * parts, or [IPv6]), an optional port, an optional path. Refused: user information, a query, a
 * fragment, white space, control bytes and NUL, non-ASCII bytes, an escape in the host, a trailing
 * dot or an empty label, numbers that resolvers read as addresses (127.1, 0x7f000001,
 * 017700000001), zone identifiers, an empty port or one outside 1 to 65535, a path that
 * target_check_path refuses.
 */
#ifndef HOST_BROKER_HTTP_UPSTREAM_URL_H
#define HOST_BROKER_HTTP_UPSTREAM_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/os/failure.h"
#include "host-broker/base/slice.h"
#include "host-broker/http/target.h"

#define UPSTREAM_HOST_MAX 253 /* characters of a name (RFC 1035), without a final dot */
#define UPSTREAM_PATH_MAX 1023
#define UPSTREAM_ORIGIN_MAX (8 + UPSTREAM_HOST_MAX + 2 + 6 + 1) /* https://[HOST]:PORT and a NUL */

struct upstream_url {
    bool https;
    bool ipv6;                        /* host is an IPv6 literal, kept without brackets */
    bool ipv4;                        /* host is an IPv4 literal */
    char host[UPSTREAM_HOST_MAX + 1]; /* lower case; IPv6 in its canonical form */
    uint16_t port;                    /* 80 or 443 when none was written */
    char path[UPSTREAM_PATH_MAX + 1]; /* as written: "" or begins with a slash */
    size_t prefix_length;             /* of the path without trailing slashes */
};

/* Parses `length` bytes. 0, or -EINVAL with a reason that does not quote the URL, which may contain
 * a password. */
int upstream_url_parse(struct upstream_url *out, const char *text, size_t length,
                       struct failure *why);

/* Parses the gateway's URL: it must be https, or http to a loopback address. A trailing /v1 (or
 * /v1/) is removed, and *v1_removed tells it, for a notice. */
int upstream_url_parse_gateway(struct upstream_url *out, const char *text, bool *v1_removed,
                               struct failure *why);

/* True for 127.0.0.0/8, ::1 and `localhost`, which libcurl resolves itself, without asking a
 * server. */
bool upstream_url_is_loopback(const struct upstream_url *url);

/* Parses "HOST" or "HOST:PORT" (a name, IPv4 or [IPv6]), as strictly, into host, port and the flags
 * of *out. Without a port *out keeps its own. 0 or -EINVAL. */
int upstream_url_parse_authority(struct upstream_url *out, struct slice text, struct failure *why);

/* Writes scheme://host[:port] and a NUL, with brackets around IPv6 and the port only when it is not
 * the scheme's default. Returns the length, or -ENOSPC. */
int upstream_url_origin(const struct upstream_url *url, char *out, size_t size);

/* Writes the path and query that follow the origin in the URL for libcurl: the URL's prefix, then
 * the target's rest and query, with a NUL. An empty rest gives the path as it was written (with its
 * trailing slash or without; "/" when it has none). Returns the length, or -ENOSPC. The result
 * always begins with the prefix and never has a dot segment. */
int upstream_url_join(const struct upstream_url *url, const struct target *target, char *out,
                      size_t size);

/* Writes host[:port] alone, as in a Host field or a message. */
int upstream_url_authority(const struct upstream_url *url, char *out, size_t size);

/* True for characters whose escape means the same as the character (RFC 3986 section 2.3). */
static inline bool upstream_url_is_unreserved(int byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

/* True when scheme, host and port are the same. */
bool upstream_url_same_origin(const struct upstream_url *a, const struct upstream_url *b);

#endif
