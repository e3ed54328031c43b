/* The errors that the broker itself answers: one table.
 *
 * Every such answer has the form
 *
 *     {"type":"error","error":{"type":"codev_no_rule","message":"...","rule":"npm"}}
 *
 * so that a person who reads the output of a tool in the sandbox learns what refused the request,
 * and what to do. `rule` is the route's name (also `gateway`) and is left out when there is none.
 * Messages never contain a token, a query or a header's value. Text from the guest (a name, a host)
 * is escaped by the JSON writer.
 */
#ifndef HOST_BROKER_HTTP_BROKER_ERROR_H
#define HOST_BROKER_HTTP_BROKER_ERROR_H

#include <stdbool.h>
#include <stddef.h>

enum broker_error {
    BROKER_ERROR_BAD_REQUEST,          /* 400: not HTTP/1.x by RFC 9112, or a refused path */
    BROKER_ERROR_UNAUTHENTICATED,      /* 401: no preface, or a wrong token */
    BROKER_ERROR_MALFORMED_PREFACE,    /* 403: begins like a preface but is malformed */
    BROKER_ERROR_ABSOLUTE_TARGET,      /* 403: absolute-form, as sent to a forward proxy */
    BROKER_ERROR_NO_RULE,              /* 403: /_undeclared/HOST, from a rewritten link */
    BROKER_ERROR_NOT_ALLOWED,          /* 403: not in the list of --gateway-allow */
    BROKER_ERROR_UNKNOWN_NAME,         /* 404: the first segment names no rule */
    BROKER_ERROR_METHOD,               /* 405: CONNECT, TRACE, TRACK */
    BROKER_ERROR_REQUEST_TIMEOUT,      /* 408: no complete head in 30 s, or a stalled body */
    BROKER_ERROR_EXPECTATION,          /* 417: Expect other than 100-continue */
    BROKER_ERROR_UPGRADE,              /* 426: WebSocket and the like; clients then use HTTP */
    BROKER_ERROR_HEAD_TOO_LARGE,       /* 431: head over 64 KiB, or too many fields */
    BROKER_ERROR_INTERNAL,             /* 500: out of memory and the like */
    BROKER_ERROR_UPSTREAM_NAME,        /* 502: the upstream's host name does not resolve */
    BROKER_ERROR_UPSTREAM_CONNECT,     /* 502: refused or unreachable */
    BROKER_ERROR_UPSTREAM_TLS,         /* 502: handshake or certificate */
    BROKER_ERROR_PROXY,                /* 502: the proxy could not be reached or refused */
    BROKER_ERROR_PROXY_AUTHENTICATION, /* 502: the proxy requires a login that it did not get */
    BROKER_ERROR_UPSTREAM_BROKEN,      /* 502: closed early, or the answer is not HTTP */
    BROKER_ERROR_BUSY,                 /* 503: too many requests at once; has Retry-After */
    BROKER_ERROR_NO_LOGIN,             /* 503: the gateway's token was removed; has Retry-After */
    BROKER_ERROR_UPSTREAM_TIMEOUT,     /* 504: no connection in 10 s, or idle for too long */
    BROKER_ERROR_VERSION,              /* 505: HTTP/2's preface, HTTP/0.9, HTTP/1.2 and above */
    BROKER_ERROR_COUNT
};

struct broker_error_kind {
    const char *type;    /* "codev_bad_request" */
    int status;          /* 400 to 599 */
    const char *message; /* the default message */
    const char *fields;  /* further header lines, each with CRLF (Retry-After, Allow), or "" */
};

extern const struct broker_error_kind broker_error_kinds[BROKER_ERROR_COUNT];

#define BROKER_ERROR_MESSAGE_MAX 512
#define BROKER_ERROR_BODY_MAX 4096 /* room for any message of that length, escaped, and a name */
#define BROKER_ERROR_RESPONSE_MAX 5120 /* a whole answer */

/* Writes the JSON body, a newline and a NUL. `message` is cut at BROKER_ERROR_MESSAGE_MAX; NULL:
 * the table's. `rule` NULL: left out. Returns the length, or -ENOSPC. */
int broker_error_body(char *out, size_t size, enum broker_error error, const char *message,
                      const char *rule);

/* Framing of the answer. */
struct broker_error_framing {
    bool keep_alive; /* false: Connection: close */
    bool head_only;  /* the request was HEAD: no body, but its Content-Length */
};

/* Writes a whole answer, status line to body. Returns its length, or -ENOSPC. */
int broker_error_response(char *out, size_t size, enum broker_error error, const char *message,
                          const char *rule, struct broker_error_framing framing);

#endif
