/* Parses the command line: a parser for each kind of value, the table of options, argv, and checks
 * of the whole. A parser stores into *options and returns 0, or -EINVAL with a reason to which
 * take_argument adds the name of the option.
 */
#include "host-broker/config/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "host-broker/http/field.h"
#include "host-broker/http/header_policy.h"
#include "host-broker/http/target.h"
#include "host-broker/rules/rules.h"

/* Accepts decimal digits only. */
static int parse_number(const char *text, unsigned minimum, unsigned maximum, unsigned *out,
                        struct failure *why)
{
    unsigned long long number = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits > 0 && digits <= 10 && text[digits] == '\0')
        number = strtoull(text, NULL, 10);
    else
        digits = 0;
    if (digits == 0 || number < minimum || number > maximum)
        return failure_set(why, EINVAL, "'%.40s' is not a number from %u to %u", text, minimum,
                           maximum);
    *out = (unsigned)number;
    return 0;
}

static int store_path(const char **out, const char *value, struct failure *why)
{
    if (value[0] == '\0')
        return failure_set(why, EINVAL, "the path is empty");
    *out = value;
    return 0;
}

static int set_listen(struct broker_options *options, const char *value, struct failure *why)
{
    if (options->listener_count == OPTIONS_LISTENERS_MAX)
        return failure_set(why, EINVAL, "given more than %d times", OPTIONS_LISTENERS_MAX);
    struct endpoint *endpoint = &options->listeners[options->listener_count];
    int result = endpoint_parse_listen(endpoint, value, why);
    if (result < 0)
        return result;
    options->listener_count++;
    return 0;
}

static int set_peer_cid(struct broker_options *options, const char *value, struct failure *why)
{
    unsigned cid;
    int result = parse_number(value, 1, UINT32_MAX - 1, &cid, why);
    if (result == 0)
        options->peer_cid = cid;
    return result;
}

static int set_gateway_url(struct broker_options *options, const char *value, struct failure *why)
{
    return upstream_url_parse_gateway(&options->gateway, value, &options->gateway_v1_removed, why);
}

static int set_token_file(struct broker_options *options, const char *value, struct failure *why)
{
    return store_path(&options->gateway_token_file, value, why);
}

static int set_gateway_auth(struct broker_options *options, const char *value, struct failure *why)
{
    static const char prefix[] = "header:";
    if (strcmp(value, "bearer") == 0) {
        options->gateway_auth = GATEWAY_AUTH_BEARER;
        options->gateway_header = SLICE_LITERAL("Authorization");
    } else if (strcmp(value, "x-api-key") == 0) {
        options->gateway_auth = GATEWAY_AUTH_X_API_KEY;
        options->gateway_header = SLICE_LITERAL("x-api-key");
    } else if (strncmp(value, prefix, sizeof(prefix) - 1) == 0) {
        struct slice name = slice_of(value + sizeof(prefix) - 1);
        if (!header_policy_credential_name(name))
            return failure_set(why, EINVAL, "'%.100s' is not a header field that can carry a token",
                               name.bytes);
        options->gateway_auth = GATEWAY_AUTH_HEADER;
        options->gateway_header = name;
    } else {
        return failure_set(why, EINVAL, "'%.100s' is not bearer, x-api-key or header:NAME", value);
    }
    return 0;
}

static int set_gateway_allow(struct broker_options *options, const char *value, struct failure *why)
{
    if (options->gateway_allow_count == OPTIONS_GATEWAY_ALLOW_MAX)
        return failure_set(why, EINVAL, "given more than %d times", OPTIONS_GATEWAY_ALLOW_MAX);
    const char *space = strchr(value, ' ');
    if (!space)
        return failure_set(why, EINVAL, "'%.100s' is not 'METHOD /prefix'", value);
    struct gateway_allow allow = {{value, (size_t)(space - value)}, slice_of(space + 1)};
    if (!field_is_token(allow.method))
        return failure_set(why, EINVAL, "'%.100s' does not begin with a method", value);
    if (allow.prefix.length == 0 || allow.prefix.bytes[0] != '/' ||
        target_check_path(allow.prefix) != TARGET_FAULT_NONE)
        return failure_set(why, EINVAL, "'%.100s': the prefix is not a path", value);
    options->gateway_allow[options->gateway_allow_count++] = allow;
    return 0;
}

static int set_rules(struct broker_options *options, const char *value, struct failure *why)
{
    return store_path(&options->rules_file, value, why);
}

static int set_app_data(struct broker_options *options, const char *value, struct failure *why)
{
    return store_path(&options->app_data, value, why);
}

static int set_guest_url(struct broker_options *options, const char *value, struct failure *why)
{
    struct upstream_url url;
    int result = upstream_url_parse(&url, value, strlen(value), why);
    if (result < 0)
        return result;
    if (url.prefix_length > 0)
        return failure_set(why, EINVAL, "a path is not allowed");
    result = upstream_url_origin(&url, options->guest_url_text, sizeof(options->guest_url_text));
    options->guest_url = options->guest_url_text;
    return result < 0 ? result : 0;
}

static int set_ca_file(struct broker_options *options, const char *value, struct failure *why)
{
    if (options->ca_file_count == OPTIONS_CA_FILES_MAX)
        return failure_set(why, EINVAL, "given more than %d times", OPTIONS_CA_FILES_MAX);
    int result = store_path(&options->ca_files[options->ca_file_count], value, why);
    if (result == 0)
        options->ca_file_count++;
    return result;
}

static int store_proxy_script(struct broker_options *options, const char *url, struct failure *why)
{
    static const char *const schemes[] = {"http://", "https://", "file:///"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t length = strlen(schemes[i]);
        if (strncasecmp(url, schemes[i], length) == 0 && url[length] != '\0') {
            options->proxy.mode = PROXY_MODE_SCRIPT;
            options->proxy.script = url;
            return strlen(url) <= PROXY_SCRIPT_URL_MAX
                       ? 0
                       : failure_set(why, EINVAL, "the PAC script's URL is too long");
        }
    }
    return failure_set(why, EINVAL,
                       "the PAC script's URL does not begin with http://, https:// or file:///");
}

/* No reason quotes the value, which may hold a password. */
static int set_proxy(struct broker_options *options, const char *value, struct failure *why)
{
    static const char script[] = "pac+";
    if (strcmp(value, "system") == 0) {
        options->proxy.mode = PROXY_MODE_SYSTEM;
        return 0;
    }
    if (strcmp(value, "none") == 0) {
        options->proxy.mode = PROXY_MODE_NONE;
        return 0;
    }
    if (strncmp(value, script, sizeof(script) - 1) == 0)
        return store_proxy_script(options, value + sizeof(script) - 1, why);
    options->proxy.mode = PROXY_MODE_URL;
    options->proxy.list.count = 0;
    int result = proxy_list_add_url(&options->proxy.list, value, why);
    if (result == 0 && options->proxy.list.proxies[0].kind == PROXY_DIRECT)
        return failure_set(why, EINVAL, "direct:// is not a proxy: use none");
    return result;
}

static int set_pac_mandatory(struct broker_options *options, const char *value, struct failure *why)
{
    (void)value;
    (void)why;
    options->proxy.pac_mandatory = true;
    return 0;
}

static int set_proxy_auth_host(struct broker_options *options, const char *value,
                               struct failure *why)
{
    if (options->proxy.auth_host_count == PROXY_AUTH_HOSTS_MAX)
        return failure_set(why, EINVAL, "given more than %d times", PROXY_AUTH_HOSTS_MAX);
    struct upstream_url url = {0};
    int result = upstream_url_parse_authority(&url, slice_of(value), why);
    if (result < 0)
        return result;
    if (url.port != 0 || url.ipv6)
        return failure_set(why, EINVAL, "'%.100s' is not a host name without a port", value);
    options->proxy.auth_hosts[options->proxy.auth_host_count++] = value;
    return 0;
}

static int set_max_requests(struct broker_options *options, const char *value, struct failure *why)
{
    return parse_number(value, 1, 65536, &options->max_requests, why);
}

static int set_max_connections(struct broker_options *options, const char *value,
                               struct failure *why)
{
    return parse_number(value, 1, 65536, &options->max_connections, why);
}

/* A number followed by s, m or h; without a unit it is seconds. */
static int set_idle_timeout(struct broker_options *options, const char *value, struct failure *why)
{
    char number[12];
    size_t length = strlen(value);
    unsigned unit = 1, count;
    const char *units = length > 0 ? strchr("smh", value[length - 1]) : NULL;

    if (units) {
        unit = *units == 'h' ? 3600 : *units == 'm' ? 60 : 1;
        length--;
    }
    if (length >= sizeof(number))
        length = sizeof(number) - 1; /* parse_number refuses so many digits */
    memcpy(number, value, length);
    number[length] = '\0';
    int result = parse_number(number, 1, 604800 / unit, &count, why);
    if (result == 0)
        options->idle_timeout_seconds = count * unit;
    return result;
}

static int set_log(struct broker_options *options, const char *value, struct failure *why)
{
    return store_path(&options->log, value, why);
}

static int set_check(struct broker_options *options, const char *value, struct failure *why)
{
    (void)value;
    (void)why;
    options->check = true;
    return 0;
}

struct option_row {
    const char *name;
    const char *value; /* placeholder in the help; NULL for a switch */
    bool repeatable;
    int (*set)(struct broker_options *options, const char *value, struct failure *why);
    const char *help;
};

static const struct option_row option_table[] = {
    {"listen", "ENDPOINT", true, set_listen,
     "where the relay connects: unix:PATH, vsock:PORT or tcp:ADDRESS:PORT (TLS)"},
    {"peer-cid", "CID", false, set_peer_cid, "the guest that may connect over vsock"},
    {"gateway-url", "URL", false, set_gateway_url,
     "the model gateway, without /v1 (https, or http on loopback)"},
    {"gateway-token-file", "FILE", false, set_token_file, "the file with the gateway's token"},
    {"gateway-auth", "KIND", false, set_gateway_auth,
     "how the token is sent: bearer (default), x-api-key, header:NAME"},
    {"gateway-allow", "'METHOD /PREFIX'", true, set_gateway_allow,
     "requests that may go to the gateway (default: all)"},
    {"rules", "FILE", false, set_rules, "the file with the named upstreams; it must exist"},
    {"app-data", "DIR", false, set_app_data, "the folder that may hold " RULES_FILE_NAME},
    {"guest-url", "URL", false, set_guest_url,
     "the broker as the guest sees it (default http://127.0.0.1:8788)"},
    {"ca-file", "FILE", true, set_ca_file, "further certificate authorities to trust (PEM)"},
    {"proxy", "system|none|URL|pac+URL", false, set_proxy,
     "proxies for upstreams (default system)"},
    {"pac-mandatory", NULL, false, set_pac_mandatory,
     "without the PAC script, refuse requests instead of connecting directly"},
    {"proxy-auth-host", "HOST", true, set_proxy_auth_host,
     "a proxy that may get Negotiate even if a PAC script chose it"},
    {"max-requests", "N", false, set_max_requests,
     "requests at the same time; more get 503 (default 256)"},
    {"max-connections", "N", false, set_max_connections,
     "connections at the same time (default 1024)"},
    {"idle-timeout", "TIME", false, set_idle_timeout,
     "time without a byte after which a stream ends (default 30m)"},
    {"log", "FILE", false, set_log, "one JSON line per request (default: standard error)"},
    {"check", NULL, false, set_check, "check the configuration and end"},
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

/* The row for "NAME" or "NAME=VALUE", without the hyphens. */
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

/* Takes argv[*at], and the next argument if that is its value. */
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

/* The name of a required option that is missing, or NULL. --check needs no listener, and without a
 * login it can check the rules alone. */
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
                               "--listen vsock needs --peer-cid, because every guest of this host "
                               "could connect");
    if (options->rules_file && options->app_data)
        return failure_set(why, EINVAL, "--rules and --app-data exclude each other: give one");
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
          "[OPTION]...\n\nConnects one sandbox to its model gateway and its named upstreams.\n\n",
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
