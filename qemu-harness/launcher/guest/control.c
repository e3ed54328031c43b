/* The connection and its two buffers; what lines mean is in control_event.c. */
#include "qemu-harness/launcher/guest/control.h"

#include <errno.h>
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
