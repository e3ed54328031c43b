/* What a line from the guest means: a table of event names, one reader each.
 *
 * A reader refuses what its event must not look like; members that it does not know are left alone. */
#include "qemu-harness/launcher/guest/control.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "common/text/encoding.h"

const char *const control_event_names[EVENT_KIND_COUNT] = {
    [EVENT_HELLO] = "hello",   [EVENT_STAGE] = "stage",     [EVENT_READY] = "ready",
    [EVENT_FAILED] = "failed", [EVENT_WARNING] = "warning", [EVENT_FIREWALL] = "firewall",
    [EVENT_OUTPUT] = "output", [EVENT_DROPPED] = "dropped", [EVENT_CREDIT] = "credit",
    [EVENT_TIME] = "time",     [EVENT_EXIT] = "exit",       [EVENT_UNKNOWN] = "?",
};

const char *const control_stream_names[STREAM_COUNT] = {
    [STREAM_STDOUT] = "stdout",
    [STREAM_STDERR] = "stderr",
    [STREAM_TTY] = "tty",
};

#define EXIT_CODE_MAX 255
#define SIGNAL_MAX 64
#define EVENT_MEMBERS_MAX 64

/* A string member cut to the room there is; "" when it is absent or no string. */
static void take_text(const struct json *line, const char *name, char *out, size_t size)
{
    uint32_t index = json_member(line, 0, name);
    out[0] = '\0';
    int result = index ? json_string(line, index, out, size) : -EINVAL;
    if (result == -ENAMETOOLONG) {
        const struct json_token *token = &line->tokens[index];
        size_t length = token->end - token->start;
        if (length > size - 1)
            length = size - 1;
        memcpy(out, line->text + token->start, length); /* escapes stay: it is for a person */
        out[length] = '\0';
    } else if (result < 0) {
        out[0] = '\0';
    }
}

/* A number member, with or without fraction; 0 when it is absent or none. */
static double take_milliseconds(const struct json *line, const char *name)
{
    char text[32];
    uint32_t index = json_member(line, 0, name);
    if (!index || line->tokens[index].type != JSON_NUMBER)
        return 0;
    const struct json_token *token = &line->tokens[index];
    snprintf(text, sizeof(text), "%.*s", (int)(token->end - token->start),
             line->text + token->start);
    double value = strtod(text, NULL);
    return isfinite(value) && value >= 0 && value < 1e9 ? value : 0;
}

static int take_number(const struct json *line, const char *name, int64_t least, int64_t most,
                       int64_t *out)
{
    uint32_t index = json_member(line, 0, name);
    if (!index || json_int64(line, index, out) || *out < least || *out > most)
        return -EINVAL;
    return 0;
}

static int read_output(struct control *control, const struct json *line,
                       struct control_event *event)
{
    uint32_t stream = json_member(line, 0, "stream");
    uint32_t data = json_member(line, 0, "data");
    unsigned kind = 0;
    while (kind < STREAM_COUNT && !json_string_equals(line, stream, control_stream_names[kind]))
        kind++;
    if (!stream || !data || kind == STREAM_COUNT)
        return -EINVAL;
    event->stream = (enum control_stream)kind;
    char *text = (char *)control->data;
    int length = json_string(line, data, text, BASE64_LENGTH(CONTROL_DATA_MAX) + 1);
    if (length < 0)
        return length;
    length = base64_decode(control->data, CONTROL_DATA_MAX, text, (size_t)length);
    if (length < 0)
        return length;
    event->data = control->data;
    event->length = (size_t)length;
    return 0;
}

static int read_exit(const struct json *line, struct control_event *event)
{
    if (take_number(line, "signal", 1, SIGNAL_MAX, &event->number) == 0) {
        event->by_signal = true;
        return 0;
    }
    return take_number(line, "code", 0, EXIT_CODE_MAX, &event->number);
}

static int read_event(struct control *control, const struct json *line, struct control_event *event)
{
    switch (event->kind) {
    case EVENT_HELLO:
        return take_number(line, "protocol", 1, INT32_MAX, &event->number);
    case EVENT_STAGE:
        take_text(line, "name", event->name, sizeof(event->name));
        event->ms = take_milliseconds(line, "ms");
        return 0;
    case EVENT_READY:
        event->ms = take_milliseconds(line, "boot_ms");
        take_text(line, "way_in", event->name, sizeof(event->name));
        return 0;
    case EVENT_FAILED:
        take_text(line, "stage", event->name, sizeof(event->name));
        take_text(line, "error", event->text, sizeof(event->text));
        return 0;
    case EVENT_WARNING:
        take_text(line, "text", event->text, sizeof(event->text));
        return 0;
    case EVENT_FIREWALL:
        take_text(line, "state", event->name, sizeof(event->name));
        return 0;
    case EVENT_OUTPUT:
        return read_output(control, line, event);
    case EVENT_DROPPED:
        return take_number(line, "lines", 0, INT64_MAX, &event->number);
    case EVENT_CREDIT:
        return take_number(line, "bytes", 0, CONTROL_CREDIT_INITIAL, &event->number);
    case EVENT_TIME:
        return take_number(line, "number", 1, INT64_MAX, &event->number);
    case EVENT_EXIT:
        return read_exit(line, event);
    case EVENT_UNKNOWN:
        take_text(line, "event", event->name, sizeof(event->name));
        return 0;
    case EVENT_KIND_COUNT:
        break;
    }
    return 0;
}

/* A name that stands twice means one thing here and perhaps another to who reads the line behind us. */
static bool is_event(const struct json *line)
{
    return line->tokens[0].type == JSON_OBJECT && line->tokens[0].size <= EVENT_MEMBERS_MAX &&
           json_member(line, 0, "event") && !json_find_duplicate(line, 0);
}

static enum control_event_kind event_kind(const struct json *line)
{
    uint32_t name = json_member(line, 0, "event");
    for (unsigned kind = 0; name && kind < EVENT_UNKNOWN; kind++)
        if (json_string_equals(line, name, control_event_names[kind]))
            return (enum control_event_kind)kind;
    return EVENT_UNKNOWN;
}

int control_next(struct control *control, struct control_event *event, struct failure *why)
{
    char *text;
    size_t length;
    int result;
    do /* an empty line says nothing (it may stand behind one that was cut) */
        result = line_buffer_take(&control->in, &text, &length);
    while (result == 1 && length == 0);
    if (result == 0)
        return 0;
    if (result < 0)
        return failure_set(why, EMSGSIZE, "the guest sent a line longer than %d bytes",
                           CONTROL_LINE_MAX);
    struct json line;
    struct json_position where;
    if (json_parse(&line, text, length, control->tokens, CONTROL_TOKENS_MAX, &where))
        return failure_set(why, EPROTO, "the guest sent a line that is no JSON: column %u: %s",
                           where.column, where.reason);
    if (!is_event(&line))
        return failure_set(why, EPROTO, "the guest sent a line that is no event");
    *event = (struct control_event){.kind = event_kind(&line), .line = text, .line_length = length};
    if (read_event(control, &line, event))
        return failure_set(why, EPROTO, "the guest sent a malformed event `%s`",
                           control_event_names[event->kind]);
    if (control->state == CONTROL_SILENT) {
        if (event->kind != EVENT_HELLO)
            return failure_set(why, EPROTO, "the guest did not say hello first");
        if (event->number != PROTOCOL_VERSION)
            return failure_set(why, EPROTONOSUPPORT,
                               "the guest speaks protocol %lld, this program %d",
                               (long long)event->number, PROTOCOL_VERSION);
        control->state = CONTROL_OPEN;
        fd_close(&control->listener);
    }
    if (event->kind == EVENT_CREDIT) {
        control->input_credit += event->number;
        if (control->input_credit > CONTROL_CREDIT_INITIAL)
            control->input_credit = CONTROL_CREDIT_INITIAL; /* never more than is in flight */
    }
    return 1;
}
