/* The command line of codev-broker (design, section 8): one const table, everything validated before
 * anything is opened.
 *
 * What the table does not know, a value that is missing, malformed or given twice where one is meant, is
 * a usage error. Values are kept as slices of argv, so argv must outlive them.
 */
#ifndef HOST_BROKER_CONFIG_OPTIONS_H
#define HOST_BROKER_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/net/endpoint.h"
#include "common/os/failure.h"
#include "host-broker/base/slice.h"
#include "host-broker/http/upstream_url.h"
#include "host-broker/proxy/proxy_settings.h"
#include "host-broker/proxy/resolver.h"

#define OPTIONS_LISTENERS_MAX 8
#define OPTIONS_CA_FILES_MAX RESOLVER_CA_FILES_MAX
#define OPTIONS_GATEWAY_ALLOW_MAX 64

/* Exit statuses (sysexits.h's numbers). */
enum broker_exit {
    BROKER_EXIT_OK = 0,
    BROKER_EXIT_USAGE = 64,         /* the command line */
    BROKER_EXIT_CONFIGURATION = 65, /* malformed or unsafe rules, a CA file that is none */
    BROKER_EXIT_INTERNAL = 70,      /* out of memory, no event loop */
    BROKER_EXIT_UNAVAILABLE = 69,   /* cannot listen */
    BROKER_EXIT_CREDENTIAL = 77,    /* the gateway's token cannot be read */
};

/* How the gateway's credential is sent. */
enum gateway_auth {
    GATEWAY_AUTH_BEARER,    /* Authorization: Bearer TOKEN */
    GATEWAY_AUTH_X_API_KEY, /* x-api-key: TOKEN */
    GATEWAY_AUTH_HEADER,    /* NAME: TOKEN */
    GATEWAY_AUTH_COUNT
};

/* One --gateway-allow 'METHOD /prefix'; METHOD `*` is any. */
struct gateway_allow {
    struct slice method, prefix;
};

struct broker_options {
    struct endpoint listeners[OPTIONS_LISTENERS_MAX]; /* unix and vsock */
    size_t listener_count;
    uint32_t peer_cid; /* vsock (which demands it): connections from other CIDs are closed */
    struct upstream_url gateway;
    bool gateway_v1_removed; /* for the notice */
    const char *gateway_token_file;
    enum gateway_auth gateway_auth;
    struct slice gateway_header; /* name of the field that carries the credential, for all three */
    struct gateway_allow gateway_allow[OPTIONS_GATEWAY_ALLOW_MAX];
    size_t gateway_allow_count; /* 0: everything */
    const char *rules_file;     /* --rules: must exist */
    const char *app_data;       /* --app-data: DIR/sandbox-egress.json, may be absent */
    const char *guest_url; /* without a trailing slash; its text was copied to guest_url_text */
    char guest_url_text[UPSTREAM_ORIGIN_MAX];
    const char *ca_files[OPTIONS_CA_FILES_MAX];
    size_t ca_file_count;
    struct proxy_options proxy;
    unsigned max_requests, max_connections;
    unsigned idle_timeout_seconds;
    const char *log; /* NULL: standard error */
    bool check;
};

enum options_action {
    OPTIONS_RUN, /* or --check: see options.check */
    OPTIONS_HELP,
    OPTIONS_VERSION,
};

/* Parses argv[1..argc-1]. The action, or -EINVAL with a reason: print it with "try --help" and exit with
 * BROKER_EXIT_USAGE. --help and --version win over anything wrong behind them. */
int options_parse(struct broker_options *out, int argc, char *const argv[], struct failure *why);

/* The usage text, from the table. */
void options_print_help(FILE *stream);

/* True when --gateway-allow lists nothing, or an entry whose method is equal (or `*`) and whose prefix
 * the path under the gateway's base begins with, ending at a segment boundary. `rest` is target.rest. */
bool options_gateway_allows(const struct broker_options *options, struct slice method,
                            struct slice rest);

/* True when neither a path nor --gateway-allow narrows the gateway: the start then warns that
 * key-management paths are reachable. */
bool options_gateway_is_open(const struct broker_options *options);

/* The file with the rules, written to `out` (--rules as it is, or --app-data with its name), or an empty
 * text when neither was given. *may_be_absent tells the two apart. 0 or -ENAMETOOLONG. */
int options_rules_path(const struct broker_options *options, char *out, size_t size,
                       bool *may_be_absent);

#endif
