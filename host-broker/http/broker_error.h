/* What the broker itself answers when it does not pass an answer on: one table of types.
 *
 * Every such answer has the shape
 *
 *     {"type":"error","error":{"type":"codev_no_rule","message":"...","rule":"npm"}}
 *
 * so that a person inside the sandbox, reading the output of whatever tool met the error, learns what
 * refused and what to do about it. `rule` is the route's name (gateway included) and is left out when
 * none is known. Messages never hold a token, a query or a header's value; text from the guest (a
 * name, a host) is escaped by the JSON writer.
 */
#ifndef HOST_BROKER_HTTP_BROKER_ERROR_H
#define HOST_BROKER_HTTP_BROKER_ERROR_H

#include <stdbool.h>
#include <stddef.h>

enum broker_error {
    BROKER_ERROR_BAD_REQUEST,          /* 400: not HTTP/1.x as RFC 9112 has it, or a refused path */
    BROKER_ERROR_UNAUTHENTICATED,      /* 401: no preface, or another sandbox's token */
    BROKER_ERROR_MALFORMED_PREFACE,    /* 403: begins like a preface and is none */
    BROKER_ERROR_ABSOLUTE_TARGET,      /* 403: absolute-form: this is no forward proxy */
    BROKER_ERROR_NO_RULE,              /* 403: /_undeclared/HOST, where a redirect pointed */
    BROKER_ERROR_NOT_ALLOWED,          /* 403: outside what --gateway-allow lists */
    BROKER_ERROR_UNKNOWN_NAME,         /* 404: the first segment names no rule */
    BROKER_ERROR_METHOD,               /* 405: CONNECT, TRACE, TRACK */
    BROKER_ERROR_REQUEST_TIMEOUT,      /* 408: a head that took longer than 30 s, a stalled body */
    BROKER_ERROR_EXPECTATION,          /* 417: Expect other than 100-continue */
    BROKER_ERROR_UPGRADE,              /* 426: WebSocket and the like; clients fall back to HTTP */
    BROKER_ERROR_HEAD_TOO_LARGE,       /* 431: head over 64 KiB, or too many fields */
    BROKER_ERROR_INTERNAL,             /* 500: out of memory and the like */
    BROKER_ERROR_UPSTREAM_NAME,        /* 502: the upstream's host name does not resolve */
    BROKER_ERROR_UPSTREAM_CONNECT,     /* 502: refused or unreachable */
    BROKER_ERROR_UPSTREAM_TLS,         /* 502: handshake or certificate */
    BROKER_ERROR_PROXY,                /* 502: the proxy could not be reached or refused */
    BROKER_ERROR_PROXY_AUTHENTICATION, /* 502: the proxy demands a login that it did not get */
    BROKER_ERROR_UPSTREAM_BROKEN,      /* 502: closed early, or what it says is no HTTP */
    BROKER_ERROR_BUSY,                 /* 503: too many requests at once; has Retry-After */
    BROKER_ERROR_NO_LOGIN,             /* 503: the gateway's token was removed; has Retry-After */
    BROKER_ERROR_UPSTREAM_TIMEOUT,     /* 504: no connection in 10 s, or idle for too long */
    BROKER_ERROR_VERSION,              /* 505: HTTP/2's preface, HTTP/0.9, HTTP/1.2 and above */
    BROKER_ERROR_COUNT
};

struct broker_error_kind {
    const char *type;    /* "codev_bad_request" */
    int status;          /* 400 to 599 */
    const char *message; /* default, a sentence without a full stop */
    const char
        *fields; /* further header lines, each with CRLF, or "": Retry-After, Allow, Upgrade */
};

extern const struct broker_error_kind broker_error_kinds[BROKER_ERROR_COUNT];

#define BROKER_ERROR_MESSAGE_MAX 512
#define BROKER_ERROR_BODY_MAX 4096 /* room for any message of that length, escaped, and a name */
#define BROKER_ERROR_RESPONSE_MAX 5120 /* a whole answer */

/* Writes the JSON body with a newline and a final NUL. `message` NULL: the table's; a longer one than
 * BROKER_ERROR_MESSAGE_MAX is cut. `rule` NULL: left out. Returns the length, or -ENOSPC. */
int broker_error_body(char *out, size_t size, enum broker_error error, const char *message,
                      const char *rule);

/* How the answer ends and what of it is sent. */
struct broker_error_framing {
    bool keep_alive; /* false: Connection: close */
    bool head_only;  /* the request was HEAD: Content-Length as if, but no body */
};

/* Writes a whole answer, status line to body. Returns its length, or -ENOSPC. */
int broker_error_response(char *out, size_t size, enum broker_error error, const char *message,
                          const char *rule, struct broker_error_framing framing);

#endif
