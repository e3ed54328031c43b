/* The connection, its two buffers, the commands, and the events of the guest: a table of event
 * names and one reader for each. A reader refuses a malformed event and ignores unknown members.
 */
#include "qemu-harness/launcher/guest/control.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/json/json_writer.h"
#include "common/os/cleanup.h"
#include "common/os/secret.h"
#include "common/text/encoding.h"

#define COMMAND_MAX 256
#define WRITE_MAX (32 * 1024) /* larger packets fail on some VMMs */
#define EXIT_CODE_MAX 255
#define SIGNAL_MAX 64
#define EVENT_MEMBERS_MAX 64

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

int control_init(struct control *control, int listener, struct failure *why)
{
    *control = (struct control){.listener = listener, .fd = -1};
    char *in = malloc(CONTROL_LINE_MAX + 1);
    control->tokens = calloc(CONTROL_TOKENS_MAX, sizeof(*control->tokens));
    control->data = malloc(BASE64_LENGTH(CONTROL_DATA_MAX) + 1);
    control->out = malloc(CONTROL_OUT_SIZE);
    if (!in || !control->tokens || !control->data || !control->out) {
        free(in);
        return failure_errno(why, ENOMEM, "control channel");
    }
    line_buffer_init(&control->in, in, CONTROL_LINE_MAX + 1);
    control->input_credit = CONTROL_CREDIT_INITIAL;
    return 0;
}

void control_destroy(struct control *control)
{
    fd_close(&control->listener);
    fd_close(&control->fd);
    if (control->out)
        secret_wipe(control->out, CONTROL_OUT_SIZE);
    free(control->in.bytes);
    free(control->tokens);
    free(control->data);
    free(control->out);
    *control = (struct control){.listener = -1, .fd = -1};
}

void control_attach(struct control *control, int fd)
{
    control->fd = fd;
    control->state = CONTROL_SILENT;
    line_buffer_init(&control->in, control->in.bytes, control->in.size);
}

/* The connection is gone: for good once the guest has said hello on it. */
static bool control_lost(struct control *control)
{
    fd_close(&control->fd);
    control->state = control->state == CONTROL_SILENT ? CONTROL_LISTENING : CONTROL_ENDED;
    return false;
}

bool control_receive(struct control *control)
{
    size_t room;
    char *at = line_buffer_room(&control->in, &room);
    ssize_t length = read(control->fd, at, room);
    if (length > 0) {
        line_buffer_filled(&control->in, (size_t)length);
        return true;
    }
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    return control_lost(control);
}

bool control_wants_write(const struct control *control)
{
    return control->fd >= 0 && control->out_start < control->out_end;
}

bool control_flush(struct control *control)
{
    while (control_wants_write(control)) {
        size_t length = control->out_end - control->out_start;
        if (length > WRITE_MAX)
            length = WRITE_MAX;
        ssize_t written =
            send(control->fd, control->out + control->out_start, length, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            return true;
        if (written < 0)
            return control_lost(control);
        control->out_start += (size_t)written;
    }
    return true;
}

static void control_queue(struct control *control, const char *text, size_t length)
{
    if (control->out_start > 0) {
        memmove(control->out, control->out + control->out_start,
                control->out_end - control->out_start);
        control->out_end -= control->out_start;
        control->out_start = 0;
    }
    if (length > CONTROL_OUT_SIZE - control->out_end) {
        control->overflow = true;
        return;
    }
    memcpy(control->out + control->out_end, text, length);
    control->out_end += length;
}

static int64_t unix_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void control_send_config(struct control *control, const char *json, size_t length, bool add_time)
{
    char text[CONTROL_TIME_MAX];
    if (add_time) {
        int size = snprintf(text, sizeof(text), "{\"unix_ns\":%lld,", (long long)unix_now());
        control_queue(control, text, (size_t)size);
        json++; /* the brace */
        length--;
    }
    control_queue(control, json, length);
    control_queue(control, "\n", 1);
}

static void command_start(struct json_writer *writer, char *buffer, size_t size, const char *name)
{
    json_writer_start(writer, buffer, size);
    json_write_object_begin(writer);
    json_member_string(writer, "command", name);
}

static void command_finish(struct control *control, struct json_writer *writer)
{
    json_write_object_end(writer);
    int length = json_writer_finish(writer, true);
    if (length > 0)
        control_queue(control, writer->buffer, (size_t)length);
}

void control_send_time(struct control *control, int64_t number)
{
    char buffer[COMMAND_MAX];
    struct json_writer writer;
    command_start(&writer, buffer, sizeof(buffer), "time");
    json_member_int(&writer, "unix_ns", unix_now());
    json_member_int(&writer, "number", number);
    command_finish(control, &writer);
}

size_t control_input_room(const struct control *control)
{
    if (control->state != CONTROL_OPEN || control->input_credit <= 0)
        return 0;
    return control->input_credit < CONTROL_DATA_MAX ? (size_t)control->input_credit
                                                    : CONTROL_DATA_MAX;
}

void control_send_input(struct control *control, const void *data, size_t length)
{
    char buffer[BASE64_LENGTH(CONTROL_DATA_MAX) + COMMAND_MAX];
    struct json_writer writer;
    command_start(&writer, buffer, sizeof(buffer), "input");
    json_write_name(&writer, "data");
    json_write_base64(&writer, data, length);
    command_finish(control, &writer);
    control->input_credit -= (int64_t)length;
}

void control_send_input_end(struct control *control)
{
    char buffer[COMMAND_MAX];
    struct json_writer writer;
    command_start(&writer, buffer, sizeof(buffer), "input");
    json_member_bool(&writer, "eof", true);
    command_finish(control, &writer);
}

void control_send_credit(struct control *control, enum control_stream stream, size_t bytes)
{
    char buffer[COMMAND_MAX];
    struct json_writer writer;
    command_start(&writer, buffer, sizeof(buffer), "credit");
    json_member_string(&writer, "stream", control_stream_names[stream]);
    json_member_int(&writer, "bytes", (int64_t)bytes);
    command_finish(control, &writer);
}

void control_send_resize(struct control *control, unsigned rows, unsigned columns)
{
    char buffer[COMMAND_MAX];
    struct json_writer writer;
    command_start(&writer, buffer, sizeof(buffer), "resize");
    json_member_int(&writer, "rows", rows);
    json_member_int(&writer, "cols", columns);
    command_finish(control, &writer);
}

void control_send_shutdown(struct control *control, int64_t grace_ms)
{
    char buffer[COMMAND_MAX];
    struct json_writer writer;
    command_start(&writer, buffer, sizeof(buffer), "shutdown");
    json_member_int(&writer, "grace_ms", grace_ms);
    command_finish(control, &writer);
}

void control_send_ack(struct control *control)
{
    char buffer[COMMAND_MAX];
    struct json_writer writer;
    command_start(&writer, buffer, sizeof(buffer), "ack");
    command_finish(control, &writer);
}

/* --- events --- */

/* A string member, cut to `size`; "" when it is absent or no string. */
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
        memcpy(out, line->text + token->start, length); /* the escapes stay: a person reads it */
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

/* Duplicate names are refused: another reader of the line might take the other value. */
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
    do /* skip empty lines: one may follow a line that was cut */
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
        return failure_set(why, EPROTO, "the guest sent a line that is not JSON: column %u: %s",
                           where.column, where.reason);
    if (!is_event(&line))
        return failure_set(why, EPROTO, "the guest sent a line that is not an event");
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
