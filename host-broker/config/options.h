/* The command line of codev-broker: one table of options; all values are checked before anything is
 * opened.
 *
 * An unknown option, a missing or malformed value, and a second value for an option that takes one
 * are usage errors. Values point into argv, which must outlive them.
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

/* Exit statuses, numbered as in sysexits(3). */
enum broker_exit {
    BROKER_EXIT_OK = 0,
    BROKER_EXIT_USAGE = 64,         /* the command line */
    BROKER_EXIT_CONFIGURATION = 65, /* malformed or unsafe rules, an unusable CA file */
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

/* --gateway-allow 'METHOD /prefix'; the method `*` stands for all. */
struct gateway_allow {
    struct slice method, prefix;
};

struct broker_options {
    struct endpoint listeners[OPTIONS_LISTENERS_MAX];
    size_t listener_count;
    uint32_t peer_cid; /* required with vsock: connections from other CIDs are closed */
    struct upstream_url gateway;
    bool gateway_v1_removed; /* for a notice at the start */
    const char *gateway_token_file;
    enum gateway_auth gateway_auth;
    struct slice gateway_header; /* name of the field that carries the token */
    struct gateway_allow gateway_allow[OPTIONS_GATEWAY_ALLOW_MAX];
    size_t gateway_allow_count; /* 0: everything */
    const char *rules_file;     /* --rules: must exist */
    const char *app_data;       /* --app-data: DIR/sandbox-egress.json, may be absent */
    const char *guest_url;      /* without a trailing slash; points to guest_url_text */
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

/* Parses argv[1..argc-1]. The action, or -EINVAL with a reason. --help and --version take effect
 * before errors in later arguments. */
int options_parse(struct broker_options *out, int argc, char *const argv[], struct failure *why);

void options_print_help(FILE *stream);

/* True when there is no --gateway-allow, or one whose method is equal or `*` and whose prefix the
 * path begins with, up to the end of a segment. `rest` is target.rest: the path below the gateway's
 * URL. */
bool options_gateway_allows(const struct broker_options *options, struct slice method,
                            struct slice rest);

/* True when neither a path in the URL nor --gateway-allow limits the requests to the gateway: the
 * start then warns that its key management can be reached. */
bool options_gateway_is_open(const struct broker_options *options);

/* Writes the path of the file with the rules, or an empty text if none was given. *may_be_absent:
 * the path comes from --app-data. 0 or -ENAMETOOLONG. */
int options_rules_path(const struct broker_options *options, char *out, size_t size,
                       bool *may_be_absent);

#endif
