/* The first step of reading a head: one walk over its bytes, a few words of state between calls.
 *
 *     START -> METHOD -> TARGET_START -> TARGET -> VERSION -> LINE_LF
 *     LINE_LF -> FIELD_START -> FIELD_NAME -> FIELD_VALUE -> LINE_LF ...
 *     FIELD_START -> END_LF -> DONE
 *
 * A byte that has no way out of its state is the fault, at once: a client that ends its lines with a bare
 * LF never sends an empty line, so waiting for one would be waiting for the time-out.
 */
#include "host-broker/http/request_internal.h"

enum scan_state {
    SCAN_START, /* zero: what a fresh struct request_scan holds */
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
    return go(scan, scan->state + 1); /* behind SCAN_VERSION_END stands SCAN_LINE_LF */
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

/* Most bytes leave the state as it is: those at `from` are passed in one go, up to `end`. */
static size_t pass_run(const struct request_scan *scan, const char *bytes, size_t from, size_t end)
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

/* How far a head may reach that began at scan->start. */
static size_t run_end(const struct request_scan *scan, size_t length)
{
    size_t most = scan->start + REQUEST_HEAD_MAX;
    return length < most ? length : most;
}

int request_scan_bytes(struct request_scan *scan, const char *bytes, size_t length,
                       enum request_fault *fault)
{
    while (scan->position < length && scan->state != SCAN_DONE) {
        scan->position = pass_run(scan, bytes, scan->position, run_end(scan, length));
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
