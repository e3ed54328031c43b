/* The table of the broker's own errors, and how they are written. */
#include "host-broker/http/broker_error.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/json/json_writer.h"
#include "host-broker/http/response_head.h"

/* RFC 9110 requires Connection: Upgrade with Upgrade (section 7.8), Allow with 405 (15.5.6) and a
 * challenge with 401 (15.5.2). No client asks its user for a password for the scheme Codev. */
const struct broker_error_kind broker_error_kinds[] = {
    [BROKER_ERROR_BAD_REQUEST] = {"codev_bad_request", 400, "malformed request", ""},
    [BROKER_ERROR_UNAUTHENTICATED] = {"codev_unauthenticated", 401,
                                      "this connection did not present the sandbox's token",
                                      "WWW-Authenticate: Codev\r\n"},
    [BROKER_ERROR_MALFORMED_PREFACE] = {"codev_malformed_preface", 403,
                                        "the connection's preface is malformed", ""},
    [BROKER_ERROR_ABSOLUTE_TARGET] =
        {"codev_absolute_target", 403,
         "the broker is not a forward proxy: request /gateway/... or /NAME/... of a rule", ""},
    [BROKER_ERROR_NO_RULE] = {"codev_no_rule", 403,
                              "no rule for that host: add one to sandbox-egress.json", ""},
    [BROKER_ERROR_NOT_ALLOWED] =
        {"codev_not_allowed", 403,
         "this method and path are not in the gateway's list (--gateway-allow)", ""},
    [BROKER_ERROR_UNKNOWN_NAME] = {"codev_unknown_name", 404,
                                   "no rule of that name in sandbox-egress.json", ""},
    [BROKER_ERROR_METHOD] = {"codev_method_not_allowed", 405,
                             "CONNECT, TRACE and TRACK are refused on every route",
                             "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"},
    [BROKER_ERROR_REQUEST_TIMEOUT] = {"codev_request_timeout", 408,
                                      "the request did not arrive in time", ""},
    [BROKER_ERROR_EXPECTATION] = {"codev_expectation", 417,
                                  "the only supported Expect is 100-continue", ""},
    [BROKER_ERROR_UPGRADE] = {"codev_upgrade", 426,
                              "other protocols are not supported: use plain HTTP/1.1 requests",
                              "Upgrade: HTTP/1.1\r\nConnection: Upgrade\r\n"},
    [BROKER_ERROR_HEAD_TOO_LARGE] = {"codev_head_too_large", 431, "request head over 64 KiB", ""},
    [BROKER_ERROR_INTERNAL] = {"codev_internal", 500, "internal error of the broker", ""},
    [BROKER_ERROR_UPSTREAM_NAME] = {"codev_upstream_name", 502,
                                    "the upstream's host name could not be resolved", ""},
    [BROKER_ERROR_UPSTREAM_CONNECT] = {"codev_upstream_connect", 502,
                                       "the upstream could not be reached", ""},
    [BROKER_ERROR_UPSTREAM_TLS] = {"codev_upstream_tls", 502,
                                   "no trusted TLS connection to the upstream could be made", ""},
    [BROKER_ERROR_PROXY] = {"codev_proxy", 502,
                            "the proxy could not be reached or refused the connection", ""},
    [BROKER_ERROR_PROXY_AUTHENTICATION] = {"codev_proxy_authentication", 502,
                                           "proxy authentication failed", ""},
    [BROKER_ERROR_UPSTREAM_BROKEN] =
        {"codev_upstream_broken", 502,
         "the upstream closed the connection early or did not answer in HTTP", ""},
    [BROKER_ERROR_BUSY] = {"codev_busy", 503, "too many requests at once: try again",
                           "Retry-After: 1\r\n"},
    [BROKER_ERROR_NO_LOGIN] = {"codev_no_login", 503,
                               "no gateway login on the host: log in again there",
                               "Retry-After: 5\r\n"},
    [BROKER_ERROR_UPSTREAM_TIMEOUT] = {"codev_upstream_timeout", 504,
                                       "the upstream did not answer in time", ""},
    [BROKER_ERROR_VERSION] = {"codev_http_version", 505, "only HTTP/1.1 and HTTP/1.0 are supported",
                              ""},
};

static_assert(sizeof(broker_error_kinds) / sizeof(broker_error_kinds[0]) == BROKER_ERROR_COUNT,
              "one row for each error");

int broker_error_body(char *out, size_t size, enum broker_error error, const char *message,
                      const char *rule)
{
    const struct broker_error_kind *kind = &broker_error_kinds[error];
    struct json_writer writer;

    if (!message)
        message = kind->message;
    json_writer_start(&writer, out, size);
    json_write_object_begin(&writer);
    json_member_string(&writer, "type", "error");
    json_write_name(&writer, "error");
    json_write_object_begin(&writer);
    json_member_string(&writer, "type", kind->type);
    json_write_name(&writer, "message");
    json_write_bytes(&writer, message, strnlen(message, BROKER_ERROR_MESSAGE_MAX));
    if (rule)
        json_member_string(&writer, "rule", rule);
    json_write_object_end(&writer);
    json_write_object_end(&writer);
    return json_writer_finish(&writer, true);
}

int broker_error_response(char *out, size_t size, enum broker_error error, const char *message,
                          const char *rule, struct broker_error_framing framing)
{
    char body[BROKER_ERROR_BODY_MAX];
    struct response_head head;
    int body_length = broker_error_body(body, sizeof(body), error, message, rule);
    if (body_length < 0)
        return body_length;

    struct response_facts facts = {
        .head_request = framing.head_only,
        .request_minor_version = 1,
        .status = broker_error_kinds[error].status,
        .length_known = true,
        .length = (uint64_t)body_length,
        .keep_alive = framing.keep_alive,
    };
    response_head_begin(&head, out, size, facts.status);
    response_head_lines(&head, "Content-Type: application/json\r\nCache-Control: no-store\r\n");
    response_head_lines(&head, broker_error_kinds[error].fields);
    int head_length = response_head_finish(&head, &facts);
    if (head_length < 0 || framing.head_only)
        return head_length;
    if (size - (size_t)head_length < (size_t)body_length)
        return -ENOSPC;
    memcpy(out + head_length, body, (size_t)body_length);
    return head_length + body_length;
}
