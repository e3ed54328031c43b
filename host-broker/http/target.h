/* The request's target: which route it names, and the path that goes to the route's upstream.
 *
 *     /npm/@scope%2fname?write=true     name `npm`, rest `/@scope%2fname`, query `write=true`
 *
 * Only origin-form is served (RFC 9112 section 3.2); the others get an answer and no connection
 * anywhere. The path is passed on byte for byte: %2f, //, trailing slashes and the case of escapes stay.
 * Refused because an upstream might read its way out of the path prefix: dot segments, whether written
 * plain, as %2e, set off by %2f, %5c or a backslash, or with parameters behind (`..;x`, which some
 * servers cut off); percent signs that begin no escape; control bytes, also as %00 to %1f and %7f;
 * bytes above ASCII; a fragment. The query is anything printable.
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
    TARGET_FAULT_ASTERISK,  /* asterisk-form: no route has it, 404 */
    TARGET_FAULT_FORM,      /* authority-form, anything else */
    TARGET_FAULT_CHARACTER, /* a byte that cannot stand in a target */
    TARGET_FAULT_ESCAPE,    /* a percent sign without two hexadecimal digits */
    TARGET_FAULT_DOT_SEGMENT,
    TARGET_FAULT_COUNT
};

struct target_fault_kind {
    enum broker_error error;
    const char *reason;
};

extern const struct target_fault_kind target_fault_kinds[TARGET_FAULT_COUNT];

struct target {
    struct slice name;  /* first segment, as sent; empty for "/" */
    struct slice rest;  /* what follows it: empty, or begins with a slash */
    struct slice query; /* without its question mark */
    bool has_query;     /* a question mark was there, perhaps with nothing behind it */
};

/* Takes a head's method and target apart. 0, or -EINVAL and *fault; *out is touched on success only. */
int target_parse(struct target *out, struct slice method, struct slice target,
                 enum target_fault *fault);

/* Decodes the character of a path that begins at *at, and moves *at behind it. The byte, or -1 and
 * *fault: TARGET_FAULT_CHARACTER or _ESCAPE. */
int target_next_character(struct slice path, size_t *at, enum target_fault *fault);

/* Checks a path by itself (rules, Location): TARGET_FAULT_NONE, _CHARACTER, _ESCAPE or _DOT_SEGMENT.
 * '?' and '#' are characters that cannot stand in it. */
enum target_fault target_check_path(struct slice path);

#endif
