/* The head of a request, parsed strictly by RFC 9112. This is the only HTTP parser between guest
 * and upstream.
 *
 * The scan looks at each byte once, in whatever pieces the bytes arrive, until it finds the end of
 * the head or the first byte that no valid head can have. Its state is a few words, so a client
 * that sends byte by byte costs no more than one that sends everything at once, and both get the
 * same result. When the head is complete, the fields are cut into slices, and those about framing
 * are decoded and checked. Nothing is copied, changed or allocated.
 *
 * Refused although some servers accept it: a bare LF or CR, folded lines, white space before the
 * colon, control bytes and NUL in a value, a second Host or Content-Length even when equal,
 * Content-Length beside Transfer-Encoding, any transfer coding but exactly `chunked` (followed by
 * nothing, not even a tab), Transfer-Encoding in HTTP/1.0, a missing, empty or malformed Host.
 *
 * Which targets and methods are served is decided in target.h, which fields pass in
 * header_policy.h.
 */
#ifndef HOST_BROKER_HTTP_REQUEST_HEAD_H
#define HOST_BROKER_HTTP_REQUEST_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-broker/base/slice.h"
#include "host-broker/http/body_decoder.h"
#include "host-broker/http/broker_error.h"
#include "host-broker/http/field.h"

#define REQUEST_HEAD_MAX 65536 /* bytes from the first of the request line to the empty line's LF */
#define REQUEST_FIELDS_MAX 128 /* field lines */
#define REQUEST_EMPTY_LINES_MAX 4 /* CRLFs tolerated before a request line (RFC 9112 section 2.2) */

enum request_fault {
    REQUEST_FAULT_NONE,
    REQUEST_FAULT_REQUEST_LINE, /* not METHOD SP TARGET SP HTTP/1.x */
    REQUEST_FAULT_VERSION,
    REQUEST_FAULT_LINE_END,    /* a bare LF or a bare CR */
    REQUEST_FAULT_FIELD_NAME,  /* not a token directly before a colon */
    REQUEST_FAULT_FIELD_VALUE, /* a control byte */
    REQUEST_FAULT_FOLDING,
    REQUEST_FAULT_TOO_LARGE,
    REQUEST_FAULT_TOO_MANY_FIELDS,
    REQUEST_FAULT_HOST_MISSING,
    REQUEST_FAULT_HOST_TWICE,
    REQUEST_FAULT_HOST_INVALID,
    REQUEST_FAULT_LENGTH_TWICE,
    REQUEST_FAULT_LENGTH_INVALID, /* not digits, or above 2^63 - 1 */
    REQUEST_FAULT_LENGTH_AND_CODING,
    REQUEST_FAULT_CODING, /* a transfer coding other than exactly `chunked`, or twice */
    REQUEST_FAULT_CODING_IN_1_0,
    REQUEST_FAULT_EXPECTATION,
    REQUEST_FAULT_COUNT
};

/* The broker's answer: the error's type and the reason (a static string). The connection is closed
 * after it, because the start of the next request is unknown. */
struct request_fault_kind {
    enum broker_error error;
    const char *reason;
};

extern const struct request_fault_kind request_fault_kinds[REQUEST_FAULT_COUNT];

/* How far the scan has come. To be zeroed ({0}) before the first byte of each request. */
struct request_scan {
    int state;       /* private */
    size_t position; /* bytes looked at */
    size_t start;    /* of the request line, after tolerated empty lines */
    size_t fields;   /* field lines seen */
    unsigned empty_lines;
};

struct request_head {
    struct slice method;
    struct slice target; /* printable ASCII without space; its form is not checked (target.h) */
    struct slice host;   /* value of Host; empty only for HTTP/1.0 without one */
    int minor_version;   /* 0 or 1 */
    enum body_framing framing;
    uint64_t content_length; /* with BODY_LENGTH */
    bool keep_alive;         /* HTTP/1.1 without `close`; always false for HTTP/1.0 */
    bool expect_continue;    /* never for HTTP/1.0, nor without a body */
    /* Another protocol is asked for (RFC 9110 section 7.8), which is answered 426. An offer of
     * HTTP/2 alone (h2c, HTTP/2.0) is ignored, as section 7.8 allows: JDK clients send one with
     * their first request. */
    bool upgrade;
    size_t field_count;
    /* In order and as sent, but for white space around values. Must be last: only the used part of
     * it is copied. */
    struct field fields[REQUEST_FIELDS_MAX];
};

/* Parses the `length` bytes received so far for this request. `bytes` may have moved since the last
 * call, but must begin with the same bytes. Returns the length of the head including its empty line
 * (the body follows), with *out set to slices into `bytes`; 0 when more bytes are needed; or
 * -EBADMSG and *fault. *out is set on success only. The result depends on the bytes alone, not on
 * the pieces they came in. After -EBADMSG the scan cannot be used any more. */
ssize_t request_head_parse(struct request_head *out, const char *bytes, size_t length,
                           struct request_scan *scan, enum request_fault *fault);

/* True once a byte of the request line has come. A connection that has sent only empty lines is
 * idle. */
bool request_scan_begun(const struct request_scan *scan);

#endif
