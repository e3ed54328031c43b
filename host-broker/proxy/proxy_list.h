/* The ways to an upstream: proxies, or a direct connection, in the order in which they are tried.
 *
 * They come from a proxy's URL as a user writes it (--proxy, http_proxy, desktop settings) or from
 * the result of a PAC script. The text is parsed here, once. libcurl gets a URL that is written
 * from the parts, always with scheme and port (libcurl's default port for every proxy is 1080).
 */
#ifndef HOST_BROKER_PROXY_PROXY_LIST_H
#define HOST_BROKER_PROXY_PROXY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/os/failure.h"
#include "host-broker/base/slice.h"
#include "host-broker/http/upstream_url.h"

#define PROXY_LIST_MAX 8    /* further ones that a script names are left out */
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
    PROXY_SOCKS5,  /* names are resolved by the broker */
    PROXY_SOCKS5H, /* names are resolved by the proxy */
    PROXY_KIND_COUNT
};

/* The schemes of a proxy's URL in libcurl, without "://". */
extern const char *const proxy_kind_schemes[PROXY_KIND_COUNT];

struct proxy {
    enum proxy_kind kind;
    bool ipv6;
    uint16_t port;
    char host[UPSTREAM_HOST_MAX + 1];
    char user[PROXY_USER_MAX + 1]; /* user or user:password, percent-encoded; "": none */
};

struct proxy_list {
    size_t count;
    struct proxy proxies[PROXY_LIST_MAX];
};

/* Adds the proxy of a URL. Schemes: those above, and `socks` (version 5, then 4, as libproxy
 * defines it); http when there is none. The path must be "" or "/". The default port is 80, 443 or
 * 1080. 0, or -EINVAL with a reason that does not quote the URL, which may contain a password. */
int proxy_list_add_url(struct proxy_list *list, const char *url, struct failure *why);

/* Replaces the list with the result of a PAC script: "PROXY a:1; HTTPS b; SOCKS5 c:3; DIRECT". An
 * empty result means DIRECT. Entries of an unknown kind, with a missing or malformed host, or with
 * a user are left out. 0, or -EINVAL when nothing is left. */
int proxy_list_parse_result(struct proxy_list *list, struct slice result);

/* Writes the proxy's URL for libcurl, "" for a direct connection. */
void proxy_format_url(const struct proxy *proxy, bool with_user, char out[PROXY_URL_MAX]);

/* Writes HOST:PORT, or "direct", for logs and messages. */
void proxy_format_label(const struct proxy *proxy, char out[PROXY_LABEL_MAX]);

#endif
