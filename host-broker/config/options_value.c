/* The values of the broker's command line. */
#include "host-broker/config/options_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-broker/http/field.h"
#include "host-broker/http/header_policy.h"
#include "host-broker/http/target.h"

/* Decimal digits only, within bounds. */
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
        return failure_set(why, EINVAL, "'%.40s' is no number from %u to %u", text, minimum,
                           maximum);
    *out = (unsigned)number;
    return 0;
}

static int set_path(const char **out, const char *value, struct failure *why)
{
    if (value[0] == '\0')
        return failure_set(why, EINVAL, "an empty path");
    *out = value;
    return 0;
}

int options_set_listen(struct broker_options *options, const char *value, struct failure *why)
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

int options_set_peer_cid(struct broker_options *options, const char *value, struct failure *why)
{
    unsigned cid;
    int result = parse_number(value, 1, UINT32_MAX - 1, &cid, why);
    if (result == 0)
        options->peer_cid = cid;
    return result;
}

int options_set_gateway_url(struct broker_options *options, const char *value, struct failure *why)
{
    return upstream_url_parse_gateway(&options->gateway, value, &options->gateway_v1_removed, why);
}

int options_set_token_file(struct broker_options *options, const char *value, struct failure *why)
{
    return set_path(&options->gateway_token_file, value, why);
}

int options_set_gateway_auth(struct broker_options *options, const char *value, struct failure *why)
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
            return failure_set(why, EINVAL, "'%.100s' is no header field that can carry a token",
                               name.bytes);
        options->gateway_auth = GATEWAY_AUTH_HEADER;
        options->gateway_header = name;
    } else {
        return failure_set(why, EINVAL, "'%.100s' is none of bearer, x-api-key, header:NAME",
                           value);
    }
    return 0;
}

int options_set_gateway_allow(struct broker_options *options, const char *value,
                              struct failure *why)
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
        return failure_set(why, EINVAL, "'%.100s': the prefix is no path", value);
    options->gateway_allow[options->gateway_allow_count++] = allow;
    return 0;
}

int options_set_rules(struct broker_options *options, const char *value, struct failure *why)
{
    return set_path(&options->rules_file, value, why);
}

int options_set_app_data(struct broker_options *options, const char *value, struct failure *why)
{
    return set_path(&options->app_data, value, why);
}

int options_set_guest_url(struct broker_options *options, const char *value, struct failure *why)
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

int options_set_ca_file(struct broker_options *options, const char *value, struct failure *why)
{
    if (options->ca_file_count == OPTIONS_CA_FILES_MAX)
        return failure_set(why, EINVAL, "given more than %d times", OPTIONS_CA_FILES_MAX);
    int result = set_path(&options->ca_files[options->ca_file_count], value, why);
    if (result == 0)
        options->ca_file_count++;
    return result;
}

static int set_proxy_script(struct broker_options *options, const char *url, struct failure *why)
{
    static const char *const schemes[] = {"http://", "https://", "file:///"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t length = strlen(schemes[i]);
        if (strncasecmp(url, schemes[i], length) == 0 && url[length] != '\0') {
            options->proxy_mode = PROXY_MODE_SCRIPT;
            options->proxy_script = url;
            return strlen(url) <= PROXY_SCRIPT_URL_MAX
                       ? 0
                       : failure_set(why, EINVAL, "the PAC script's URL is too long");
        }
    }
    return failure_set(why, EINVAL,
                       "the PAC script's URL begins with none of http://, https://, "
                       "file:///");
}

/* The value is never quoted: it may hold a password. */
int options_set_proxy(struct broker_options *options, const char *value, struct failure *why)
{
    static const char script[] = "pac+";
    if (strcmp(value, "system") == 0) {
        options->proxy_mode = PROXY_MODE_SYSTEM;
        return 0;
    }
    if (strcmp(value, "none") == 0) {
        options->proxy_mode = PROXY_MODE_NONE;
        return 0;
    }
    if (strncmp(value, script, sizeof(script) - 1) == 0)
        return set_proxy_script(options, value + sizeof(script) - 1, why);
    options->proxy_mode = PROXY_MODE_URL;
    options->proxies.count = 0;
    int result = proxy_list_add_url(&options->proxies, value, why);
    if (result == 0 && options->proxies.proxies[0].kind == PROXY_DIRECT)
        return failure_set(why, EINVAL, "direct:// is no proxy: say none");
    return result;
}

int options_set_pac_mandatory(struct broker_options *options, const char *value,
                              struct failure *why)
{
    (void)value;
    (void)why;
    options->pac_mandatory = true;
    return 0;
}

int options_set_proxy_auth_host(struct broker_options *options, const char *value,
                                struct failure *why)
{
    if (options->proxy_auth_host_count == OPTIONS_PROXY_AUTH_HOSTS_MAX)
        return failure_set(why, EINVAL, "given more than %d times", OPTIONS_PROXY_AUTH_HOSTS_MAX);
    struct upstream_url url = {0};
    int result = upstream_url_parse_authority(&url, slice_of(value), why);
    if (result < 0)
        return result;
    if (url.port != 0 || url.ipv6)
        return failure_set(why, EINVAL, "'%.100s': a host's name without a port", value);
    options->proxy_auth_hosts[options->proxy_auth_host_count++] = value;
    return 0;
}

int options_set_max_requests(struct broker_options *options, const char *value, struct failure *why)
{
    return parse_number(value, 1, 65536, &options->max_requests, why);
}

int options_set_max_connections(struct broker_options *options, const char *value,
                                struct failure *why)
{
    return parse_number(value, 1, 65536, &options->max_connections, why);
}

/* A number with s, m or h behind it; none means seconds. */
int options_set_idle_timeout(struct broker_options *options, const char *value, struct failure *why)
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
        length = sizeof(number) - 1; /* too many digits for parse_number anyway */
    memcpy(number, value, length);
    number[length] = '\0';
    int result = parse_number(number, 1, 604800 / unit, &count, why);
    if (result == 0)
        options->idle_timeout_seconds = count * unit;
    return result;
}

int options_set_log(struct broker_options *options, const char *value, struct failure *why)
{
    return set_path(&options->log, value, why);
}

int options_set_check(struct broker_options *options, const char *value, struct failure *why)
{
    (void)value;
    (void)why;
    options->check = true;
    return 0;
}
