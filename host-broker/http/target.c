/* Parses a request's target, and checks paths for what could leave an upstream's prefix. */
#include "host-broker/http/target.h"

#include <assert.h>
#include <errno.h>

#include "host-broker/http/request_head.h"

const struct target_fault_kind target_fault_kinds[] = {
    [TARGET_FAULT_NONE] = {BROKER_ERROR_INTERNAL, "no fault"},
    [TARGET_FAULT_METHOD] = {BROKER_ERROR_METHOD, NULL},
    [TARGET_FAULT_ABSOLUTE] = {BROKER_ERROR_ABSOLUTE_TARGET, NULL},
    [TARGET_FAULT_ASTERISK] = {BROKER_ERROR_UNKNOWN_NAME,
                               "the target * is not served: request /gateway/... or /NAME/..."},
    [TARGET_FAULT_FORM] = {BROKER_ERROR_BAD_REQUEST, "the request's target is not a path"},
    [TARGET_FAULT_CHARACTER] = {BROKER_ERROR_BAD_REQUEST,
                                "character in the path or query that must be percent-encoded, or "
                                "an encoded control character"},
    [TARGET_FAULT_ESCAPE] = {BROKER_ERROR_BAD_REQUEST,
                             "percent sign in the path without two hexadecimal digits"},
    [TARGET_FAULT_DOT_SEGMENT] = {BROKER_ERROR_BAD_REQUEST, "dot segment (. or ..) in the path"},
    [TARGET_FAULT_HELD] =
        {BROKER_ERROR_BAD_REQUEST,
         "encoding in the path that some servers may read as a dot segment, where "
         "only paths below a prefix are allowed"},
};

static_assert(sizeof(target_fault_kinds) / sizeof(target_fault_kinds[0]) == TARGET_FAULT_COUNT,
              "one row for each fault");

int target_next_character(struct slice path, size_t *at, enum target_fault *fault)
{
    unsigned char byte = (unsigned char)path.bytes[(*at)++];
    if (byte <= ' ' || byte >= 0x7f || byte == '?' || byte == '#') {
        *fault = TARGET_FAULT_CHARACTER;
        return -1;
    }
    if (byte != '%')
        return byte;
    int high = *at < path.length ? ascii_hex_value(path.bytes[*at]) : -1;
    int low = high >= 0 && *at + 1 < path.length ? ascii_hex_value(path.bytes[*at + 1]) : -1;
    if (low < 0) {
        *fault = TARGET_FAULT_ESCAPE;
        return -1;
    }
    *at += 2;
    int value = high * 16 + low;
    if (value < ' ' || value == 0x7f) {
        *fault = TARGET_FAULT_CHARACTER;
        return -1;
    }
    return value;
}

/* One segment of a path as any server might read it: decoded once, ended by a slash or a backslash,
 * cut off at a semicolon. */
struct segment {
    unsigned dots;
    bool other;      /* it has a character that is no dot */
    bool blank;      /* it has a space, which some servers cut off (target_check_held_path) */
    bool parameters; /* a semicolon has come */
};

static bool segment_is_dots(const struct segment *segment)
{
    unsigned dots = segment->dots;
    return !segment->other && (dots == 1 || dots == 2 || (dots > 0 && segment->blank));
}

/* False when the character ends a dot segment. */
static bool take_character(struct segment *segment, int character)
{
    if (character == '/' || character == '\\') {
        if (segment_is_dots(segment))
            return false;
        *segment = (struct segment){0};
    } else if (character == ';') {
        segment->parameters = true;
    } else if (!segment->parameters) {
        if (character == '.')
            segment->dots++;
        else
            segment->other = true;
    }
    return true;
}

enum target_fault target_check_path(struct slice path)
{
    struct segment segment = {0};
    for (size_t at = 0; at < path.length;) {
        enum target_fault fault;
        int character = target_next_character(path, &at, &fault);
        if (character < 0)
            return fault;
        if (!take_character(&segment, character))
            return TARGET_FAULT_DOT_SEGMENT;
    }
    return segment_is_dots(&segment) ? TARGET_FAULT_DOT_SEGMENT : TARGET_FAULT_NONE;
}

/* Appends a byte, and decodes what it completes. */
static size_t append_decoded(unsigned char *plain, size_t length, char byte)
{
    plain[length++] = (unsigned char)byte;
    while (length >= 3 && plain[length - 3] == '%') {
        int high = ascii_hex_value((char)plain[length - 2]);
        int low = ascii_hex_value((char)plain[length - 1]);
        if (high < 0 || low < 0)
            break;
        length -= 2;
        plain[length - 1] = (unsigned char)(high * 16 + low);
    }
    return length;
}

/* The first bytes of a character of UTF-8 that has a shorter form: lenient decoders accept it. */
static bool is_overlong(unsigned char byte, unsigned char next)
{
    return byte == 0xc0 || byte == 0xc1 || (byte == 0xe0 && next >= 0x80 && next < 0xa0) ||
           (byte == 0xf0 && next >= 0x80 && next < 0x90);
}

enum target_fault target_check_held_path(struct slice path)
{
    static unsigned char plain[REQUEST_HEAD_MAX];
    struct segment segment = {0};
    size_t length = 0;
    if (path.length == 0 || !memchr(path.bytes, '%', path.length))
        return TARGET_FAULT_NONE; /* target_check_path has seen all of it */
    if (path.length > sizeof(plain))
        return TARGET_FAULT_HELD;
    for (size_t i = 0; i < path.length; i++)
        length = append_decoded(plain, length, path.bytes[i]);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = plain[i];
        if (byte < ' ' || byte == 0x7f || is_overlong(byte, i + 1 < length ? plain[i + 1] : 0))
            return TARGET_FAULT_HELD;
        if (byte == ' ')
            segment.blank = true;
        else if (!take_character(&segment, byte == '?' || byte == '#' ? ';' : byte))
            return TARGET_FAULT_HELD;
    }
    return segment_is_dots(&segment) ? TARGET_FAULT_HELD : TARGET_FAULT_NONE;
}

static bool method_is_refused(struct slice method)
{
    return slice_equal_nocase(method, SLICE_LITERAL("CONNECT")) ||
           slice_equal_nocase(method, SLICE_LITERAL("TRACE")) ||
           slice_equal_nocase(method, SLICE_LITERAL("TRACK"));
}

/* scheme "://" */
static bool is_absolute(struct slice target)
{
    size_t i = 0;
    while (i < target.length) {
        char lower = ascii_lower(target.bytes[i]);
        if (!((lower >= 'a' && lower <= 'z') || (i > 0 && lower >= '0' && lower <= '9') ||
              (i > 0 && (lower == '+' || lower == '-' || lower == '.'))))
            break;
        i++;
    }
    return i > 0 && target.length - i >= 3 && memcmp(target.bytes + i, "://", 3) == 0;
}

static enum target_fault check_form(struct slice target)
{
    if (target.length > 0 && target.bytes[0] == '/')
        return TARGET_FAULT_NONE;
    if (slice_equal(target, SLICE_LITERAL("*")))
        return TARGET_FAULT_ASTERISK;
    return is_absolute(target) ? TARGET_FAULT_ABSOLUTE : TARGET_FAULT_FORM;
}

static enum target_fault check_query(struct slice query)
{
    for (size_t i = 0; i < query.length; i++) {
        unsigned char byte = (unsigned char)query.bytes[i];
        if (byte <= ' ' || byte >= 0x7f || byte == '#')
            return TARGET_FAULT_CHARACTER;
    }
    return TARGET_FAULT_NONE;
}

/* Cuts the text before the first `byte` off the front of *rest. */
static struct slice cut_before(struct slice *rest, char byte)
{
    const char *found = rest->length > 0 ? memchr(rest->bytes, byte, rest->length) : NULL;
    size_t length = found ? (size_t)(found - rest->bytes) : rest->length;
    struct slice piece = {rest->bytes, length};
    rest->bytes += length;
    rest->length -= length;
    return piece;
}

int target_parse(struct target *out, struct slice method, struct slice target,
                 enum target_fault *fault)
{
    enum target_fault found = TARGET_FAULT_METHOD;
    if (!method_is_refused(method))
        found = check_form(target);
    if (found != TARGET_FAULT_NONE) {
        *fault = found;
        return -EINVAL;
    }

    struct slice query = target;
    struct slice path = cut_before(&query, '?');
    struct target parsed = {.has_query = query.length > 0};
    if (parsed.has_query)
        parsed.query = (struct slice){query.bytes + 1, query.length - 1};
    parsed.rest = (struct slice){path.bytes + 1, path.length - 1};
    parsed.name = cut_before(&parsed.rest, '/');

    found = target_check_path(path);
    if (found == TARGET_FAULT_NONE)
        found = check_query(parsed.query);
    if (found != TARGET_FAULT_NONE) {
        *fault = found;
        return -EINVAL;
    }
    *out = parsed;
    return 0;
}
