/* Reads a request's head in two steps.
 *
 * The scan walks over the bytes once and keeps a few words of state between calls:
 *
 *     START -> METHOD -> TARGET_START -> TARGET -> VERSION -> LINE_LF
 *     LINE_LF -> FIELD_START -> FIELD_NAME -> FIELD_VALUE -> LINE_LF ...
 *     FIELD_START -> END_LF -> DONE
 *
 * A byte that no transition accepts is a fault at once, without waiting for the end of the head: a
 * client that ends its lines with a bare LF never sends an empty line, so waiting would last until
 * the time-out.
 *
 * Once the scan has shown that every line is well-formed, the lines are cut, and the fields that
 * decide about framing and the connection are decoded.
 */
#include "host-broker/http/request_head.h"

#include <assert.h>
#include <errno.h>

const struct request_fault_kind request_fault_kinds[] = {
    [REQUEST_FAULT_NONE] = {BROKER_ERROR_INTERNAL, "no fault"},
    [REQUEST_FAULT_REQUEST_LINE] = {BROKER_ERROR_BAD_REQUEST, "malformed request line"},
    [REQUEST_FAULT_VERSION] = {BROKER_ERROR_VERSION, "only HTTP/1.1 and HTTP/1.0 are supported"},
    [REQUEST_FAULT_LINE_END] = {BROKER_ERROR_BAD_REQUEST, "a line does not end with CR LF"},
    [REQUEST_FAULT_FIELD_NAME] = {BROKER_ERROR_BAD_REQUEST, "malformed header field name"},
    [REQUEST_FAULT_FIELD_VALUE] = {BROKER_ERROR_BAD_REQUEST,
                                   "control character in a header field's value"},
    [REQUEST_FAULT_FOLDING] = {BROKER_ERROR_BAD_REQUEST,
                               "a header field is folded over several lines"},
    [REQUEST_FAULT_TOO_LARGE] = {BROKER_ERROR_HEAD_TOO_LARGE, "request head over 64 KiB"},
    [REQUEST_FAULT_TOO_MANY_FIELDS] = {BROKER_ERROR_HEAD_TOO_LARGE, "more than 128 header fields"},
    [REQUEST_FAULT_HOST_MISSING] = {BROKER_ERROR_BAD_REQUEST, "no Host field"},
    [REQUEST_FAULT_HOST_TWICE] = {BROKER_ERROR_BAD_REQUEST, "more than one Host field"},
    [REQUEST_FAULT_HOST_INVALID] = {BROKER_ERROR_BAD_REQUEST, "malformed Host field"},
    [REQUEST_FAULT_LENGTH_TWICE] = {BROKER_ERROR_BAD_REQUEST, "more than one Content-Length field"},
    [REQUEST_FAULT_LENGTH_INVALID] = {BROKER_ERROR_BAD_REQUEST, "malformed Content-Length"},
    [REQUEST_FAULT_LENGTH_AND_CODING] = {BROKER_ERROR_BAD_REQUEST,
                                         "Content-Length beside Transfer-Encoding"},
    [REQUEST_FAULT_CODING] = {BROKER_ERROR_BAD_REQUEST, "Transfer-Encoding other than chunked"},
    [REQUEST_FAULT_CODING_IN_1_0] = {BROKER_ERROR_BAD_REQUEST, "Transfer-Encoding in HTTP/1.0"},
    [REQUEST_FAULT_EXPECTATION] = {BROKER_ERROR_EXPECTATION, "Expect other than 100-continue"},
};

static_assert(sizeof(request_fault_kinds) / sizeof(request_fault_kinds[0]) == REQUEST_FAULT_COUNT,
              "one row for each fault");

/* --- the scan ------------------------------------------------------------------------------ */

enum scan_state {
    SCAN_START, /* zero: the state of a zeroed struct request_scan */
    SCAN_EMPTY_LF,
    SCAN_METHOD,
    SCAN_TARGET_START,
    SCAN_TARGET,
    SCAN_VERSION, /* + index into version_text: states up to SCAN_VERSION_END */
    SCAN_VERSION_END = SCAN_VERSION + 8,
    SCAN_LINE_LF,
    SCAN_FIELD_START,
    SCAN_FIELD_NAME,
    SCAN_FIELD_VALUE,
    SCAN_END_LF,
    SCAN_DONE,
};

bool request_scan_begun(const struct request_scan *scan)
{
    return scan->state > SCAN_EMPTY_LF;
}

static bool is_target_byte(unsigned char byte)
{
    return byte > ' ' && byte < 0x7f;
}

static enum request_fault go(struct request_scan *scan, int state)
{
    scan->state = state;
    return REQUEST_FAULT_NONE;
}

static enum request_fault step_request_line(struct request_scan *scan, unsigned char byte)
{
    switch (scan->state) {
    case SCAN_START:
        if (byte == '\r' && scan->empty_lines++ < REQUEST_EMPTY_LINES_MAX)
            return go(scan, SCAN_EMPTY_LF);
        if (byte == '\n')
            return REQUEST_FAULT_LINE_END;
        scan->start = scan->position;
        return field_is_token_byte(byte) ? go(scan, SCAN_METHOD) : REQUEST_FAULT_REQUEST_LINE;
    case SCAN_EMPTY_LF:
        return byte == '\n' ? go(scan, SCAN_START) : REQUEST_FAULT_LINE_END;
    case SCAN_METHOD:
        if (byte == ' ')
            return go(scan, SCAN_TARGET_START);
        return field_is_token_byte(byte) ? REQUEST_FAULT_NONE : REQUEST_FAULT_REQUEST_LINE;
    case SCAN_TARGET_START:
        return is_target_byte(byte) ? go(scan, SCAN_TARGET) : REQUEST_FAULT_REQUEST_LINE;
    case SCAN_TARGET:
        if (byte == ' ')
            return go(scan, SCAN_VERSION);
        return is_target_byte(byte) ? REQUEST_FAULT_NONE : REQUEST_FAULT_REQUEST_LINE;
    }
    return REQUEST_FAULT_REQUEST_LINE;
}

static enum request_fault step_version(struct request_scan *scan, unsigned char byte)
{
    static const char version_text[] = "HTTP/1.";
    size_t index = (size_t)(scan->state - SCAN_VERSION);

    if (index < 5 || index == 6) {
        if (byte != (unsigned char)version_text[index])
            return REQUEST_FAULT_REQUEST_LINE;
    } else if (index == 5 || index == 7) {
        if (byte < '0' || byte > '9')
            return REQUEST_FAULT_REQUEST_LINE;
        if (index == 5 ? byte != '1' : byte > '1')
            return REQUEST_FAULT_VERSION;
    } else if (byte != '\r') {
        return REQUEST_FAULT_REQUEST_LINE;
    }
    return go(scan, scan->state + 1); /* SCAN_LINE_LF follows SCAN_VERSION_END */
}

static enum request_fault step_field(struct request_scan *scan, unsigned char byte)
{
    switch (scan->state) {
    case SCAN_LINE_LF:
        return byte == '\n' ? go(scan, SCAN_FIELD_START) : REQUEST_FAULT_LINE_END;
    case SCAN_FIELD_START:
        if (byte == '\r')
            return go(scan, SCAN_END_LF);
        if (byte == '\n')
            return REQUEST_FAULT_LINE_END;
        if (byte == ' ' || byte == '\t')
            return REQUEST_FAULT_FOLDING;
        if (!field_is_token_byte(byte))
            return REQUEST_FAULT_FIELD_NAME;
        if (++scan->fields > REQUEST_FIELDS_MAX)
            return REQUEST_FAULT_TOO_MANY_FIELDS;
        return go(scan, SCAN_FIELD_NAME);
    case SCAN_FIELD_NAME:
        if (byte == ':')
            return go(scan, SCAN_FIELD_VALUE);
        return field_is_token_byte(byte) ? REQUEST_FAULT_NONE : REQUEST_FAULT_FIELD_NAME;
    case SCAN_FIELD_VALUE:
        if (byte == '\r')
            return go(scan, SCAN_LINE_LF);
        if (byte == '\n')
            return REQUEST_FAULT_LINE_END;
        return field_is_value_byte(byte) ? REQUEST_FAULT_NONE : REQUEST_FAULT_FIELD_VALUE;
    case SCAN_END_LF:
        return byte == '\n' ? go(scan, SCAN_DONE) : REQUEST_FAULT_LINE_END;
    }
    return REQUEST_FAULT_LINE_END;
}

/* Skips bytes that do not change the state, from `from` up to `end`. */
static size_t skip_run(const struct request_scan *scan, const char *bytes, size_t from, size_t end)
{
    const unsigned char *at = (const unsigned char *)bytes;
    if (scan->state == SCAN_FIELD_VALUE)
        while (from < end && field_is_value_byte(at[from]))
            from++;
    else if (scan->state == SCAN_FIELD_NAME)
        while (from < end && field_is_token_byte(at[from]))
            from++;
    else if (scan->state == SCAN_TARGET)
        while (from < end && is_target_byte(at[from]))
            from++;
    return from;
}

/* The most that skip_run may skip: the end of the bytes, or of the largest head. */
static size_t run_end(const struct request_scan *scan, size_t length)
{
    size_t most = scan->start + REQUEST_HEAD_MAX;
    return length < most ? length : most;
}

/* Continues at scan->position. 1: the head ends at scan->position; 0: more bytes are needed; -1:
 * *fault. After 1, the bytes from scan->start on are a request line, field lines and an empty line,
 * each with CRLF, and hold no other CR or LF. */
static int scan_bytes(struct request_scan *scan, const char *bytes, size_t length,
                      enum request_fault *fault)
{
    while (scan->position < length && scan->state != SCAN_DONE) {
        scan->position = skip_run(scan, bytes, scan->position, run_end(scan, length));
        if (scan->position == length)
            break;
        unsigned char byte = (unsigned char)bytes[scan->position];
        enum request_fault found;
        if (scan->state < SCAN_VERSION)
            found = step_request_line(scan, byte);
        else if (scan->state <= SCAN_VERSION_END)
            found = step_version(scan, byte);
        else
            found = step_field(scan, byte);
        scan->position++;
        if (found == REQUEST_FAULT_NONE && scan->position - scan->start > REQUEST_HEAD_MAX)
            found = REQUEST_FAULT_TOO_LARGE;
        if (found != REQUEST_FAULT_NONE) {
            *fault = found;
            return -1;
        }
    }
    return scan->state == SCAN_DONE;
}

/* --- fields -------------------------------------------------------------------------------- */

/* What the fields so far have told. */
struct decoding {
    bool host_seen, length_seen, coding_seen;
    bool close_named, upgrade_named; /* by Connection */
    bool upgrade_offered;            /* a protocol other than HTTP/2 */
    struct request_head head;        /* must be last: its unused fields are not initialized */
};

static bool is_host_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("-._~!$&'()*+,;=%", byte));
}

static bool is_address_byte(char byte)
{
    return (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F') ||
           (byte >= '0' && byte <= ':') || byte == '.';
}

/* "[" IPv6 "]" or reg-name, and an optional port (RFC 9110 section 7.2). The broker does not use
 * the value; it refuses values that two servers could read differently. */
static bool host_is_valid(struct slice host)
{
    size_t i = 0;
    if (host.length > 0 && host.bytes[0] == '[') {
        for (i = 1; i < host.length && is_address_byte(host.bytes[i]); i++)
            ;
        if (i < 3 || i == host.length || host.bytes[i++] != ']')
            return false;
    } else {
        while (i < host.length && is_host_byte(host.bytes[i]))
            i++;
        if (i == 0)
            return false;
    }
    if (i == host.length)
        return true;
    if (host.bytes[i++] != ':' || host.length - i > 5)
        return false;
    unsigned port = 0;
    for (; i < host.length; i++) {
        if (host.bytes[i] < '0' || host.bytes[i] > '9')
            return false;
        port = port * 10 + (unsigned)(host.bytes[i] - '0');
    }
    return port <= 65535;
}

static enum request_fault decode_host(struct decoding *decoding, struct slice value)
{
    if (decoding->host_seen)
        return REQUEST_FAULT_HOST_TWICE;
    decoding->host_seen = true;
    decoding->head.host = field_trim(value);
    return host_is_valid(decoding->head.host) ? REQUEST_FAULT_NONE : REQUEST_FAULT_HOST_INVALID;
}

static enum request_fault decode_length(struct decoding *decoding, struct slice value)
{
    struct slice text = field_trim(value);
    uint64_t number = 0;

    if (decoding->length_seen)
        return REQUEST_FAULT_LENGTH_TWICE;
    decoding->length_seen = true;
    if (text.length == 0)
        return REQUEST_FAULT_LENGTH_INVALID;
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return REQUEST_FAULT_LENGTH_INVALID;
        unsigned digit = (unsigned)(text.bytes[i] - '0');
        if (number > ((uint64_t)INT64_MAX - digit) / 10)
            return REQUEST_FAULT_LENGTH_INVALID;
        number = number * 10 + digit;
    }
    decoding->head.content_length = number;
    return REQUEST_FAULT_NONE;
}

/* Takes the raw value: spaces before the coding are usual, but parsers disagree about bytes after
 * it. */
static enum request_fault decode_coding(struct decoding *decoding, struct slice value)
{
    if (decoding->coding_seen)
        return REQUEST_FAULT_CODING;
    decoding->coding_seen = true;
    while (value.length > 0 && value.bytes[0] == ' ') {
        value.bytes++;
        value.length--;
    }
    return slice_equal_nocase(value, SLICE_LITERAL("chunked")) ? REQUEST_FAULT_NONE
                                                               : REQUEST_FAULT_CODING;
}

static enum request_fault decode_connection(struct decoding *decoding, struct slice value)
{
    if (field_list_has(value, SLICE_LITERAL("close")))
        decoding->close_named = true;
    if (field_list_has(value, SLICE_LITERAL("upgrade")))
        decoding->upgrade_named = true;
    return REQUEST_FAULT_NONE;
}

static enum request_fault decode_expect(struct decoding *decoding, struct slice value)
{
    if (decoding->head.minor_version == 0)
        return REQUEST_FAULT_NONE; /* RFC 9110 section 10.1.1 */
    decoding->head.expect_continue = true;
    return slice_equal_nocase(field_trim(value), SLICE_LITERAL("100-continue"))
               ? REQUEST_FAULT_NONE
               : REQUEST_FAULT_EXPECTATION;
}

static enum request_fault decode_upgrade(struct decoding *decoding, struct slice value)
{
    struct slice protocol;
    while (field_list_next(&value, &protocol))
        if (!slice_equal_nocase(protocol, SLICE_LITERAL("h2c")) &&
            !slice_equal_nocase(protocol, SLICE_LITERAL("HTTP/2.0")))
            decoding->upgrade_offered = true;
    return REQUEST_FAULT_NONE;
}

static const struct decoder {
    const char *name;
    enum request_fault (*decode)(struct decoding *decoding, struct slice value);
} decoders[] = {
    {"Host", decode_host},
    {"Content-Length", decode_length},
    {"Transfer-Encoding", decode_coding},
    {"Connection", decode_connection},
    {"Expect", decode_expect},
    {"Upgrade", decode_upgrade},
};

static enum request_fault decode_field(struct decoding *decoding, struct slice name,
                                       struct slice value)
{
    for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++)
        if (slice_equal_nocase(name, slice_of(decoders[i].name)))
            return decoders[i].decode(decoding, value);
    return REQUEST_FAULT_NONE;
}

/* Checks that need all fields. */
static enum request_fault decode_end(struct decoding *decoding)
{
    struct request_head *head = &decoding->head;

    if (!decoding->host_seen && head->minor_version > 0)
        return REQUEST_FAULT_HOST_MISSING;
    if (decoding->coding_seen && decoding->length_seen)
        return REQUEST_FAULT_LENGTH_AND_CODING;
    if (decoding->coding_seen && head->minor_version == 0)
        return REQUEST_FAULT_CODING_IN_1_0;
    if (decoding->coding_seen)
        head->framing = BODY_CHUNKED;
    else if (decoding->length_seen)
        head->framing = BODY_LENGTH;
    if (head->framing == BODY_NONE || (head->framing == BODY_LENGTH && head->content_length == 0))
        head->expect_continue = false;
    head->keep_alive = head->minor_version > 0 && !decoding->close_named;
    head->upgrade = decoding->upgrade_named && decoding->upgrade_offered;
    return REQUEST_FAULT_NONE;
}

/* Cuts METHOD SP TARGET SP HTTP/1.x CR LF, which the scan has found. Returns where the fields
 * begin. */
static const char *cut_request_line(struct request_head *head, const char *bytes, size_t length)
{
    const char *space = memchr(bytes, ' ', length);
    const char *target = space + 1;
    const char *second = memchr(target, ' ', length - (size_t)(target - bytes));

    head->method = (struct slice){bytes, (size_t)(space - bytes)};
    head->target = (struct slice){target, (size_t)(second - target)};
    head->minor_version = second[8] - '0';
    return second + 11;
}

static enum request_fault cut_fields(struct decoding *decoding, const char *line, const char *end)
{
    while (*line != '\r') {
        const char *colon = memchr(line, ':', (size_t)(end - line));
        const char *line_end = memchr(colon, '\r', (size_t)(end - colon));
        struct slice name = {line, (size_t)(colon - line)};
        struct slice value = {colon + 1, (size_t)(line_end - colon - 1)};
        enum request_fault fault = decode_field(decoding, name, value);
        if (fault != REQUEST_FAULT_NONE)
            return fault;
        decoding->head.fields[decoding->head.field_count++] =
            (struct field){name, field_trim(value)};
        line = line_end + 2;
    }
    return decode_end(decoding);
}

ssize_t request_head_parse(struct request_head *out, const char *bytes, size_t length,
                           struct request_scan *scan, enum request_fault *fault)
{
    int ended = scan_bytes(scan, bytes, length, fault);
    if (ended < 0)
        return -EBADMSG;
    if (ended == 0)
        return 0;

    struct decoding decoding;
    memset(&decoding, 0, offsetof(struct decoding, head.fields));
    const char *end = bytes + scan->position;
    const char *line =
        cut_request_line(&decoding.head, bytes + scan->start, scan->position - scan->start);
    enum request_fault found = cut_fields(&decoding, line, end);
    if (found != REQUEST_FAULT_NONE) {
        *fault = found;
        return -EBADMSG;
    }
    memcpy(out, &decoding.head,
           offsetof(struct request_head, fields) +
               decoding.head.field_count * sizeof(decoding.head.fields[0]));
    return (ssize_t)scan->position;
}
