/* The tables of header fields that do not pass. A name that ends with `*` stands for all names with
 * that prefix.
 */
#include "host-broker/http/header_policy.h"

#include <assert.h>

const char *const route_kind_names[] = {[ROUTE_GATEWAY] = "gateway", [ROUTE_NAMED] = "rule"};

static_assert(sizeof(route_kind_names) / sizeof(route_kind_names[0]) == ROUTE_KIND_COUNT,
              "one name for each kind");

/* Hop-by-hop fields (RFC 9110 section 7.6.1), in both directions. Those that begin with Proxy are
 * meant for a proxy of the guest, or reach the environment of CGI programs (httpoxy). */
static const char *const connection_fields[] = {
    "connection", "http2-settings", "keep-alive",        "proxy*", "te",
    "trailer",    "upgrade",        "transfer-encoding", NULL,
};

/* The broker writes these itself, or answers them. */
static const char *const request_framing_fields[] = {"content-length", "expect", "host", NULL};

/* Not for the gateway: other credentials, and fields that state another client, path or method than
 * those that the broker has checked. */
static const char *const gateway_request_fields[] = {
    "authorization",     "x-api-key",
    "api-key",           "cookie",
    "cookie2",           "forwarded",
    "x-forwarded*",      "x-real-ip",
    "x-original-url",    "x-original-method",
    "x-rewrite-url",     "x-http-method*", /* -Override */
    "x-method-override", NULL,
};

static const char *const response_framing_fields[] = {"content-length", NULL};

static const char *const gateway_response_fields[] = {"set-cookie", "set-cookie2", NULL};

/* About the upstream's bytes: not correct for a document whose links were rewritten. */
static const char *const rewritten_response_fields[] = {
    "accept-ranges", "content-digest",   "content-md5",
    "digest",        "last-modified",    "repr-digest",
    "etag",          "x-checksum*",      "x-amz-checksum*",
    "x-goog-hash",   "content-encoding", NULL,
};

/* Some servers pass x-api-key and x_api_key to programs as the same variable. */
static char fold(char byte)
{
    return byte == '_' ? '-' : ascii_lower(byte);
}

static bool matches(const char *pattern, struct slice name)
{
    size_t i = 0;
    while (pattern[i] != '\0' && pattern[i] != '*') {
        if (i == name.length || fold(name.bytes[i]) != pattern[i])
            return false;
        i++;
    }
    return pattern[i] == '*' || i == name.length;
}

static bool is_listed(const char *const *list, struct slice name)
{
    char first = name.length > 0 ? fold(name.bytes[0]) : '\0';
    for (; *list; list++)
        if ((*list)[0] == first && matches(*list, name))
            return true;
    return false;
}

static bool same_name(struct slice a, struct slice b)
{
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (fold(a.bytes[i]) != fold(b.bytes[i]))
            return false;
    return true;
}

static bool is_named_by(struct slice connection, struct slice name)
{
    struct slice option;
    while (field_list_next(&connection, &option))
        if (same_name(option, name))
            return true;
    return false;
}

static bool is_named_by_connection(const struct request_head *head, struct slice name)
{
    for (size_t i = 0; i < head->field_count; i++)
        if (slice_equal_nocase(head->fields[i].name, SLICE_LITERAL("Connection")) &&
            is_named_by(head->fields[i].value, name))
            return true;
    return false;
}

bool header_policy_request(enum route_kind kind, struct slice credential_name,
                           const struct request_head *head, const struct field *field)
{
    if (is_listed(connection_fields, field->name) ||
        is_listed(request_framing_fields, field->name) || is_named_by_connection(head, field->name))
        return false;
    return kind != ROUTE_GATEWAY || !(is_listed(gateway_request_fields, field->name) ||
                                      same_name(credential_name, field->name));
}

bool header_policy_response(enum route_kind kind, struct slice connection,
                            const struct field *field)
{
    if (is_listed(connection_fields, field->name) ||
        is_listed(response_framing_fields, field->name) || is_named_by(connection, field->name))
        return false;
    return kind != ROUTE_GATEWAY || !is_listed(gateway_response_fields, field->name);
}

bool header_policy_rewritten(const struct field *field)
{
    return !is_listed(rewritten_response_fields, field->name);
}

bool header_policy_credential_name(struct slice name)
{
    return field_is_token(name) && !is_listed(connection_fields, name) &&
           !is_listed(request_framing_fields, name);
}
