/* The head of a request, RFC 9112 read strictly: the only HTTP parser between guest and upstream.
 *
 * Two steps. The scan walks the bytes once, whatever the pieces they arrive in, and finds the end of
 * the head or the first byte that can be in no valid head; its state is a few words, so a client that
 * sends byte by byte costs no more than one that sends all at once, and both get the same verdict.
 * Then, with the whole head there, the fields are cut into slices and what they say about framing is
 * decoded and checked. Nothing is copied or changed; nothing is allocated.
 *
 * Refused although some servers take it: a bare LF or CR, folded lines, white space before the colon,
 * control bytes and NUL in a value, a second Host or Content-Length even when equal, Content-Length
 * beside Transfer-Encoding, any transfer coding but exactly `chunked` (nothing behind it, not even a
 * tab), Transfer-Encoding in HTTP/1.0, a missing, empty or malformed Host.
 *
 * Not decided here: which targets and methods are served (target.h), and what a route may see of the
 * fields (header_policy.h).
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
    REQUEST_FAULT_FIELD_NAME,  /* no token directly before a colon */
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

/* What to answer: the error's type and the reason in words (static). The connection is closed after
 * it: nobody knows where the next request would begin. */
struct request_fault_kind {
    enum broker_error error;
    const char *reason;
};

extern const struct request_fault_kind request_fault_kinds[REQUEST_FAULT_COUNT];

/* How far the scan got. Zeroed ({0}) before the first byte of each request. */
struct request_scan {
    int state;       /* private */
    size_t position; /* bytes looked at */
    size_t start;    /* where the request line begins, behind tolerated empty lines */
    size_t fields;   /* field lines seen */
    unsigned empty_lines;
};

struct request_head {
    struct slice method;
    struct slice target; /* printable ASCII without space, form not looked at: see target.h */
    struct slice host;   /* value of Host; empty only for HTTP/1.0 without one */
    int minor_version;   /* 0 or 1 */
    enum body_framing framing;
    uint64_t content_length; /* with BODY_LENGTH */
    bool keep_alive;         /* HTTP/1.1 without `close`; always false for HTTP/1.0 */
    bool expect_continue;    /* never for HTTP/1.0, nor without a body */
    bool upgrade; /* another protocol is asked for (RFC 9110 section 7.8), answered 426. An
                              * offer of nothing but HTTP/2 (h2c, HTTP/2.0) is ignored as section 7.8
                              * allows: JDK clients make one with each first plain request */
    size_t field_count;
    struct field fields
        [REQUEST_FIELDS_MAX]; /* field_count, in order, as sent, values without outer white space; last */
};

/* Looks at the `length` bytes received so far for this request; `bytes` may have moved since the last
 * call, but must begin with the same bytes. Returns the length of the head with its empty line (the
 * body begins behind it) and fills *out with slices into `bytes`; or 0: more bytes are needed; or
 * -EBADMSG and *fault. *out is touched on success only. The verdict depends on the bytes alone, not on
 * the pieces they came in; after -EBADMSG the scan is used up. */
ssize_t request_head_parse(struct request_head *out, const char *bytes, size_t length,
                           struct request_scan *scan, enum request_fault *fault);

/* True once a byte of the request line has been seen: what came before were tolerated empty lines, and
 * a connection that sent only these is idle rather than in the midst of a head. */
bool request_scan_begun(const struct request_scan *scan);

#endif
