/* Parses the URL of an upstream strictly, and writes its parts. */
#include "host-broker/http/upstream_url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define LABEL_MAX 63 /* RFC 1035 */

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_label_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || is_digit(byte) || byte == '-' || byte == '_';
}

/* True for four decimal parts of 0 to 255 without leading zeros: the form that all resolvers read
 * alike. */
static bool is_plain_ipv4(const char *host)
{
    struct in_addr address;
    char canonical[INET_ADDRSTRLEN];
    return inet_pton(AF_INET, host, &address) == 1 &&
           inet_ntop(AF_INET, &address, canonical, sizeof(canonical)) &&
           strcmp(canonical, host) == 0;
}

/* True when the last label is a number. Such a host is an address or invalid (WHATWG URL, "ends in
 * a number"); getaddrinfo(3) takes 0x7f000001 for an address. */
static bool ends_in_number(const char *host)
{
    const char *label = strrchr(host, '.');
    label = label ? label + 1 : host;
    if (label[0] == '0' && label[1] == 'x')
        return strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
    return strspn(label, "0123456789") == strlen(label);
}

static const char *check_labels(const char *host)
{
    size_t length = 0;
    for (const char *at = host;; at++) {
        if (*at == '.' || *at == '\0') {
            if (length == 0)
                return *at == '\0' && at > host ? "the host ends with a dot"
                                                : "the host has an empty label";
            if (at[-1] == '-')
                return "a label of the host ends with a hyphen";
            if (length > LABEL_MAX)
                return "a label of the host is longer than 63 characters";
            if (*at == '\0')
                return NULL;
            length = 0;
        } else if (!is_label_byte(*at)) {
            return "the host contains a character that is not allowed in host names";
        } else if (length++ == 0 && *at == '-') {
            return "a label of the host begins with a hyphen";
        }
    }
}

static const char *parse_name(struct upstream_url *out, struct slice text)
{
    if (text.length == 0)
        return "the host is missing";
    if (text.length > UPSTREAM_HOST_MAX)
        return "the host is longer than 253 characters";
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] == '\0')
            return "the host contains a NUL byte";
        out->host[i] = ascii_lower(text.bytes[i]);
    }
    out->host[text.length] = '\0';
    const char *wrong = check_labels(out->host);
    if (wrong)
        return wrong;
    out->ipv4 = is_plain_ipv4(out->host);
    if (!out->ipv4 && ends_in_number(out->host))
        return "the host is a number but not an IPv4 address of four decimal parts";
    return NULL;
}

static const char *parse_ipv6(struct upstream_url *out, struct slice text)
{
    char literal[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (text.length >= sizeof(literal))
        return "malformed IPv6 address";
    memcpy(literal, text.bytes, text.length);
    literal[text.length] = '\0';
    if (strlen(literal) != text.length || inet_pton(AF_INET6, literal, &address) != 1 ||
        !inet_ntop(AF_INET6, &address, out->host, sizeof(out->host)))
        return "malformed IPv6 address";
    out->ipv6 = true;
    return NULL;
}

static const char *parse_port(struct upstream_url *out, struct slice text)
{
    unsigned port = 0;
    if (text.length == 0)
        return "the port after the colon is missing";
    for (size_t i = 0; i < text.length; i++) {
        if (!is_digit(text.bytes[i]) || i == 5)
            return "malformed port";
        port = port * 10 + (unsigned)(text.bytes[i] - '0');
    }
    if (port == 0 || port > 65535)
        return "the port is not between 1 and 65535";
    out->port = (uint16_t)port;
    return NULL;
}

static const char *parse_authority(struct upstream_url *out, struct slice text)
{
    const char *end = text.bytes + text.length;
    const char *host_end = end;
    const char *wrong;

    if (text.length > 0 && memchr(text.bytes, '@', text.length))
        return "user information (user:password@) is not allowed";
    if (text.length > 0 && text.bytes[0] == '[') {
        const char *bracket = memchr(text.bytes, ']', text.length);
        if (!bracket)
            return "malformed IPv6 address";
        host_end = bracket + 1;
        if (host_end < end && *host_end != ':')
            return "malformed IPv6 address";
        wrong = parse_ipv6(out, (struct slice){text.bytes + 1, (size_t)(bracket - text.bytes - 1)});
    } else {
        const char *colon = text.length > 0 ? memchr(text.bytes, ':', text.length) : NULL;
        if (colon)
            host_end = colon;
        wrong = parse_name(out, (struct slice){text.bytes, (size_t)(host_end - text.bytes)});
    }
    if (wrong || host_end == end)
        return wrong;
    return parse_port(out, (struct slice){host_end + 1, (size_t)(end - host_end - 1)});
}

int upstream_url_parse_authority(struct upstream_url *out, struct slice text, struct failure *why)
{
    struct upstream_url parsed = *out;
    const char *wrong = parse_authority(&parsed, text);
    if (wrong)
        return failure_set(why, EINVAL, "%s", wrong);
    *out = parsed;
    return 0;
}

static const char *parse_path(struct upstream_url *out, struct slice text)
{
    if (text.length > UPSTREAM_PATH_MAX)
        return "the path is longer than 1023 characters";
    if (text.length > 0 && memchr(text.bytes, '?', text.length))
        return "a query is not allowed";
    if (text.length > 0 && memchr(text.bytes, '#', text.length))
        return "a fragment is not allowed";
    if (text.length > 0 && memchr(text.bytes, '\\', text.length))
        return "a backslash is not allowed";
    enum target_fault fault = target_check_path(text);
    if (fault != TARGET_FAULT_NONE)
        return target_fault_kinds[fault].reason;
    if (text.length > 0)
        memcpy(out->path, text.bytes, text.length);
    out->path[text.length] = '\0';
    out->prefix_length = text.length;
    while (out->prefix_length > 0 && out->path[out->prefix_length - 1] == '/')
        out->prefix_length--;
    return NULL;
}

static const char *check_bytes(struct slice text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.bytes[i];
        if (byte == 0)
            return "the URL contains a NUL byte";
        if (byte <= ' ' || byte == 0x7f)
            return "the URL contains white space or a control character";
        if (byte > 0x7f)
            return "the URL contains a non-ASCII character (write the host in punycode, xn--...)";
    }
    return NULL;
}

static bool skip_scheme(struct slice *text, struct slice scheme)
{
    if (text->length < scheme.length ||
        !slice_equal_nocase((struct slice){text->bytes, scheme.length}, scheme))
        return false;
    text->bytes += scheme.length;
    text->length -= scheme.length;
    return true;
}

static const char *parse_url(struct upstream_url *out, struct slice text)
{
    const char *wrong = check_bytes(text);
    if (wrong)
        return wrong;
    out->https = skip_scheme(&text, SLICE_LITERAL("https://"));
    if (!out->https && !skip_scheme(&text, SLICE_LITERAL("http://")))
        return "the URL does not begin with https:// (or http://)";
    out->port = out->https ? 443 : 80;

    size_t length = 0;
    while (length < text.length && !strchr("/?#\\", text.bytes[length]))
        length++;
    wrong = parse_authority(out, (struct slice){text.bytes, length});
    return wrong ? wrong
                 : parse_path(out, (struct slice){text.bytes + length, text.length - length});
}

int upstream_url_parse(struct upstream_url *out, const char *text, size_t length,
                       struct failure *why)
{
    struct upstream_url parsed = {0};
    const char *wrong = parse_url(&parsed, (struct slice){text, length});
    if (wrong)
        return failure_set(why, EINVAL, "%s", wrong);
    *out = parsed;
    return 0;
}

int upstream_url_parse_gateway(struct upstream_url *out, const char *text, bool *v1_removed,
                               struct failure *why)
{
    struct upstream_url parsed;
    int result = upstream_url_parse(&parsed, text, strlen(text), why);
    if (result < 0)
        return result;
    if (!parsed.https && !upstream_url_is_loopback(&parsed))
        return failure_set(why, EINVAL,
                           "the gateway must be https (http only to a loopback address)");

    *v1_removed =
        parsed.prefix_length >= 3 && memcmp(parsed.path + parsed.prefix_length - 3, "/v1", 3) == 0;
    if (*v1_removed) {
        parsed.prefix_length -= 3;
        while (parsed.prefix_length > 0 && parsed.path[parsed.prefix_length - 1] == '/')
            parsed.prefix_length--;
        parsed.path[parsed.prefix_length] = '\0';
    }
    *out = parsed;
    return 0;
}

bool upstream_url_is_loopback(const struct upstream_url *url)
{
    if (url->ipv4)
        return strncmp(url->host, "127.", 4) == 0;
    return strcmp(url->host, url->ipv6 ? "::1" : "localhost") == 0;
}

static int write_authority(const struct upstream_url *url, const char *scheme, char *out,
                           size_t size)
{
    const char *open = url->ipv6 ? "[" : "", *close = url->ipv6 ? "]" : "";
    int length =
        url->port == (url->https ? 443 : 80)
            ? snprintf(out, size, "%s%s%s%s", scheme, open, url->host, close)
            : snprintf(out, size, "%s%s%s%s:%u", scheme, open, url->host, close, url->port);
    return (size_t)length < size ? length : -ENOSPC;
}

int upstream_url_authority(const struct upstream_url *url, char *out, size_t size)
{
    return write_authority(url, "", out, size);
}

int upstream_url_origin(const struct upstream_url *url, char *out, size_t size)
{
    return write_authority(url, url->https ? "https://" : "http://", out, size);
}

int upstream_url_join(const struct upstream_url *url, const struct target *target, char *out,
                      size_t size)
{
    struct slice prefix = {url->path, url->prefix_length};
    if (target->rest.length == 0)
        prefix = url->path[0] ? slice_of(url->path) : SLICE_LITERAL("/");
    size_t query_length = target->has_query ? target->query.length + 1 : 0;
    size_t length = prefix.length + target->rest.length + query_length;
    if (length >= size || length > INT_MAX)
        return -ENOSPC;

    memcpy(out, prefix.bytes, prefix.length);
    if (target->rest.length > 0)
        memcpy(out + prefix.length, target->rest.bytes, target->rest.length);
    if (target->has_query) {
        out[length - query_length] = '?';
        if (target->query.length > 0)
            memcpy(out + length - target->query.length, target->query.bytes, target->query.length);
    }
    out[length] = '\0';
    return (int)length;
}

bool upstream_url_same_origin(const struct upstream_url *a, const struct upstream_url *b)
{
    return a->https == b->https && a->port == b->port && a->ipv6 == b->ipv6 &&
           strcmp(a->host, b->host) == 0;
}
