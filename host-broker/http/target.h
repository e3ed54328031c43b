/* The request's target: the route that it names, and the path at the route's upstream.
 *
 *     /npm/@scope%2fname?write=true     name `npm`, rest `/@scope%2fname`, query `write=true`
 *
 * Only origin-form is served (RFC 9112 section 3.2); for other forms the broker answers itself. The
 * path is passed on byte for byte: %2f, //, trailing slashes and the case of escapes stay.
 *
 * Refused, because some upstream could leave its path prefix: dot segments, in whatever spelling
 * (plain, as %2e, between %2f, %5c or backslashes, or with parameters that some servers cut off:
 * `..;x`); a percent sign without two hexadecimal digits; control bytes, also encoded (%00 to %1f,
 * %7f); non-ASCII bytes; a fragment. The query may have any printable character.
 */
#ifndef HOST_BROKER_HTTP_TARGET_H
#define HOST_BROKER_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "host-broker/base/slice.h"
#include "host-broker/http/broker_error.h"

#define TARGET_GATEWAY "gateway"
#define TARGET_UNDECLARED "_undeclared" /* no rule can have this name */

enum target_fault {
    TARGET_FAULT_NONE,
    TARGET_FAULT_METHOD,    /* CONNECT, TRACE, TRACK in any case */
    TARGET_FAULT_ABSOLUTE,  /* absolute-form */
    TARGET_FAULT_ASTERISK,  /* asterisk-form: 404 */
    TARGET_FAULT_FORM,      /* authority-form, anything else */
    TARGET_FAULT_CHARACTER, /* a byte that is invalid in a target */
    TARGET_FAULT_ESCAPE,    /* a percent sign without two hexadecimal digits */
    TARGET_FAULT_DOT_SEGMENT,
    TARGET_FAULT_HELD, /* target_check_held_path */
    TARGET_FAULT_COUNT
};

struct target_fault_kind {
    enum broker_error error;
    const char *reason;
};

extern const struct target_fault_kind target_fault_kinds[TARGET_FAULT_COUNT];

struct target {
    struct slice name;  /* first segment, as sent; empty for "/" */
    struct slice rest;  /* of the path: empty, or begins with a slash */
    struct slice query; /* without the question mark */
    bool has_query;     /* there was a question mark, perhaps with an empty query */
};

/* Parses and checks a head's method and target. 0, or -EINVAL and *fault. *out is set on success
 * only. */
int target_parse(struct target *out, struct slice method, struct slice target,
                 enum target_fault *fault);

/* Decodes the character of a path that begins at *at, and moves *at behind it. The byte, or -1 and
 * *fault: TARGET_FAULT_CHARACTER or _ESCAPE. */
int target_next_character(struct slice path, size_t *at, enum target_fault *fault);

/* Checks a path alone (of a rule, of a Location): TARGET_FAULT_NONE, _CHARACTER, _ESCAPE or
 * _DOT_SEGMENT. '?' and '#' are invalid characters. */
enum target_fault target_check_path(struct slice path);

/* Checks a path that must stay below a prefix, after target_check_path: TARGET_FAULT_NONE or _HELD.
 * It is refused if a server that decodes escapes any number of times, accepts overlong UTF-8
 * (%c0%ae), cuts spaces off a segment, or ends the path at an encoded question mark could find a
 * dot segment or a control character. */
enum target_fault target_check_held_path(struct slice path);

#endif
