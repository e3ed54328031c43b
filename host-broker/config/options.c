/* The broker's command line: the table, the walk over argv, and what must hold in the end. */
#include "host-broker/config/options.h"

#include <errno.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "host-broker/config/options_internal.h"
#include "host-broker/rules/rules.h"

struct option_row {
    const char *name;
    const char *value; /* its name in the help, NULL for a switch */
    bool repeatable;
    int (*set)(struct broker_options *options, const char *value, struct failure *why);
    const char *help;
};

static const struct option_row option_table[] = {
    {"listen", "ENDPOINT", true, options_set_listen,
     "unix:PATH, vsock:PORT or tcp:ADDRESS:PORT (TLS), where the guest's relay connects"},
    {"peer-cid", "CID", false, options_set_peer_cid, "on vsock, serve this guest only"},
    {"gateway-url", "URL", false, options_set_gateway_url,
     "the model gateway, without /v1 (https, or http on loopback)"},
    {"gateway-token-file", "FILE", false, options_set_token_file, "holds the gateway's token"},
    {"gateway-auth", "KIND", false, options_set_gateway_auth,
     "how to send it: bearer (default), x-api-key, header:NAME"},
    {"gateway-allow", "'METHOD /PREFIX'", true, options_set_gateway_allow,
     "what may be asked of the gateway (default: everything)"},
    {"rules", "FILE", false, options_set_rules, "the file of named upstreams; it must exist"},
    {"app-data", "DIR", false, options_set_app_data,
     "the folder in which " RULES_FILE_NAME " may lie"},
    {"guest-url", "URL", false, options_set_guest_url,
     "how the guest reaches this broker (default http://127.0.0.1:8788)"},
    {"ca-file", "FILE", true, options_set_ca_file, "trust these CAs too (PEM)"},
    {"proxy", "system|none|URL|pac+URL", false, options_set_proxy,
     "the way to upstreams (default system)"},
    {"pac-mandatory", NULL, false, options_set_pac_mandatory,
     "refuse when a PAC script cannot be had, instead of connecting directly"},
    {"proxy-auth-host", "HOST", true, options_set_proxy_auth_host,
     "a proxy that may get Negotiate though a PAC script chose it"},
    {"max-requests", "N", false, options_set_max_requests,
     "requests at once, 503 beyond (default 256)"},
    {"max-connections", "N", false, options_set_max_connections,
     "connections at once (default 1024)"},
    {"idle-timeout", "TIME", false, options_set_idle_timeout,
     "end a stream on which nothing moves (default 30m)"},
    {"log", "FILE", false, options_set_log, "one JSON line per request (default: standard error)"},
    {"check", NULL, false, options_set_check, "validate everything and end"},
};

static void set_defaults(struct broker_options *options)
{
    *options = (struct broker_options){
        .gateway_auth = GATEWAY_AUTH_BEARER,
        .gateway_header = SLICE_LITERAL("Authorization"),
        .guest_url = options->guest_url_text,
        .guest_url_text = "http://127.0.0.1:8788",
        .max_requests = 256,
        .max_connections = 1024,
        .idle_timeout_seconds = 1800,
    };
}

/* The row for "NAME" or "NAME=VALUE" (without the two hyphens). */
static const struct option_row *find_row(const char *text, const char **value)
{
    size_t length = strcspn(text, "=");
    *value = text[length] == '=' ? text + length + 1 : NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++)
        if (strlen(option_table[i].name) == length &&
            memcmp(option_table[i].name, text, length) == 0)
            return &option_table[i];
    return NULL;
}

/* Takes argv[*at], and its value when that stands apart. */
static int take_argument(struct broker_options *options, int argc, char *const argv[], int *at,
                         bool *seen, struct failure *why)
{
    const char *text = argv[*at];
    const char *value = NULL;
    const struct option_row *row = strncmp(text, "--", 2) == 0 ? find_row(text + 2, &value) : NULL;

    if (!row)
        return failure_set(why, EINVAL, "unknown argument '%.100s'", text);
    if (seen[row - option_table] && !row->repeatable)
        return failure_set(why, EINVAL, "--%s is given twice", row->name);
    seen[row - option_table] = true;
    if (!row->value && value)
        return failure_set(why, EINVAL, "--%s takes no value", row->name);
    if (row->value && !value) {
        if (*at + 1 >= argc)
            return failure_set(why, EINVAL, "--%s needs a value", row->name);
        value = argv[++*at];
    }
    return failure_prefix(why, row->set(options, value, why), "--%s", row->name);
}

static bool was_seen(const bool *seen, const char *name)
{
    const char *unused;
    return seen[find_row(name, &unused) - option_table];
}

/* A required option that is not there, or NULL. A check needs no listener; and where nobody is logged
 * in there is no broker, but the rules can be checked alone. */
static const char *find_missing(const struct broker_options *options, const bool *seen)
{
    const bool url = was_seen(seen, "gateway-url"), token = was_seen(seen, "gateway-token-file");
    const bool has_rules = options->rules_file || options->app_data;

    if (!options->check && !was_seen(seen, "listen"))
        return "listen";
    if (options->check && has_rules && !url && !token)
        return NULL;
    return !url ? "gateway-url" : !token ? "gateway-token-file" : NULL;
}

static int check_whole(const struct broker_options *options, const bool *seen, struct failure *why)
{
    const char *missing = find_missing(options, seen);
    if (missing)
        return failure_set(why, EINVAL, "--%s is missing", missing);
    for (size_t i = 0; i < options->listener_count; i++)
        if (options->listeners[i].kind == ENDPOINT_VSOCK && options->peer_cid == 0)
            return failure_set(why, EINVAL,
                               "--listen vsock needs --peer-cid: every guest of this "
                               "host could connect");
    if (options->rules_file && options->app_data)
        return failure_set(why, EINVAL, "--rules and --app-data exclude each other");
    return 0;
}

int options_parse(struct broker_options *out, int argc, char *const argv[], struct failure *why)
{
    bool seen[ARRAY_LENGTH(option_table)] = {0};

    set_defaults(out);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return OPTIONS_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return OPTIONS_VERSION;
        int result = take_argument(out, argc, argv, &i, seen, why);
        if (result < 0)
            return result;
    }
    int result = check_whole(out, seen, why);
    return result < 0 ? result : OPTIONS_RUN;
}

void options_print_help(FILE *stream)
{
    fputs("usage: codev-broker --listen ENDPOINT --gateway-url URL --gateway-token-file FILE "
          "[OPTION]...\n\nJoins one sandbox to its model gateway and its named upstreams.\n\n",
          stream);
    for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++) {
        const struct option_row *row = &option_table[i];
        int width = fprintf(stream, "  --%s%s%s", row->name, row->value ? " " : "",
                            row->value ? row->value : "");
        fprintf(stream, "%*s%s%s\n", width < 34 ? 34 - width : 1, "", row->help,
                row->repeatable ? "; repeatable" : "");
    }
    fputs("  --help, --version\n\nExit status: 64 usage, 65 malformed rules or configuration, 69 "
          "cannot listen,\n77 the gateway's token cannot be read.\n",
          stream);
}

bool options_gateway_allows(const struct broker_options *options, struct slice method,
                            struct slice rest)
{
    for (size_t i = 0; i < options->gateway_allow_count; i++) {
        const struct gateway_allow *allow = &options->gateway_allow[i];
        struct slice prefix = allow->prefix;
        if (!slice_equal(allow->method, SLICE_LITERAL("*")) && !slice_equal(allow->method, method))
            continue;
        while (prefix.length > 0 && prefix.bytes[prefix.length - 1] == '/')
            prefix.length--;
        if (rest.length >= prefix.length &&
            slice_equal((struct slice){rest.bytes, prefix.length}, prefix) &&
            (rest.length == prefix.length || rest.bytes[prefix.length] == '/'))
            return true;
    }
    return options->gateway_allow_count == 0;
}

bool options_gateway_is_open(const struct broker_options *options)
{
    return options->gateway_allow_count == 0 && options->gateway.prefix_length == 0;
}

int options_rules_path(const struct broker_options *options, char *out, size_t size,
                       bool *may_be_absent)
{
    int length;
    *may_be_absent = !options->rules_file;
    if (options->rules_file)
        length = snprintf(out, size, "%s", options->rules_file);
    else if (options->app_data)
        length = snprintf(out, size, "%s/%s", options->app_data, RULES_FILE_NAME);
    else
        length = snprintf(out, size, "%s", "");
    return (size_t)length < size ? 0 : -ENAMETOOLONG;
}
