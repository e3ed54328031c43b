/* The ways to an upstream: proxies, or a direct connection, in the order in which they are tried.
 *
 * Made from the proxy's URL as a user writes it (--proxy, http_proxy, desktop settings) or from what a PAC
 * script returned. Everything is taken apart here, once; libcurl later gets a URL put together anew, with
 * scheme and port always written (its own default port for any proxy would be 1080).
 */
#ifndef HOST_BROKER_PROXY_PROXY_LIST_H
#define HOST_BROKER_PROXY_PROXY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/os/failure.h"
#include "host-broker/base/slice.h"
#include "host-broker/http/upstream_url.h"

#define PROXY_LIST_MAX 8    /* what a script names beyond is left out */
#define PROXY_USER_MAX 255  /* characters of user:password, as written */
#define PROXY_LABEL_MAX 264 /* HOST:PORT with brackets, and a NUL */
#define PROXY_URL_MAX (16 + PROXY_USER_MAX + 1 + PROXY_LABEL_MAX)
#define PROXY_SCRIPT_URL_MAX 2047 /* characters of a PAC script's URL */
#define PROXY_RESULT_MAX 2048     /* characters of what a script returns */

enum proxy_kind {
    PROXY_DIRECT,
    PROXY_HTTP,
    PROXY_HTTPS,
    PROXY_SOCKS4,
    PROXY_SOCKS4A,
    PROXY_SOCKS5,  /* names are resolved here */
    PROXY_SOCKS5H, /* names are resolved by the proxy */
    PROXY_KIND_COUNT
};

/* As libcurl writes them in a proxy's URL, without "://". */
extern const char *const proxy_kind_schemes[PROXY_KIND_COUNT];

struct proxy {
    enum proxy_kind kind;
    bool ipv6;
    uint16_t port;
    char host[UPSTREAM_HOST_MAX + 1];
    char user[PROXY_USER_MAX +
              1]; /* user or user:password, percent-encoded as written; "" for none */
};

struct proxy_list {
    size_t count;
    struct proxy proxies[PROXY_LIST_MAX];
};

/* Adds the proxy of a URL: a scheme of the above, `socks` (version 5, then 4, as libproxy defines it) or
 * `direct`; without one it is http. A path, if any, must be "/". Without a port it is 80, 443 or 1080.
 * 0, or -EINVAL with a reason that does not quote the URL (it may hold a password). */
int proxy_list_add_url(struct proxy_list *list, const char *url, struct failure *why);

/* Replaces the list by the result of a PAC script: "PROXY a:1; HTTPS b; SOCKS5 c:3; DIRECT". An empty
 * result is DIRECT; entries of unknown kinds, with malformed or absent hosts, or with a user are left
 * out. 0, or -EINVAL when nothing is left. */
int proxy_list_parse_result(struct proxy_list *list, struct slice result);

/* The proxy's URL for libcurl, "" for a direct connection. `user` says whether to write the user. */
void proxy_format_url(const struct proxy *proxy, bool with_user, char out[PROXY_URL_MAX]);

/* HOST:PORT, or "direct": for logs and messages. */
void proxy_format_label(const struct proxy *proxy, char out[PROXY_LABEL_MAX]);

#endif
