/* The queues of the control channel.
 *
 * `writing` is the state of the sending side. IDLE: no line is partly written, and the next one
 * comes from the events if there are any, else from the output slot. EVENTS or OUTPUT: a line of
 * that queue is partly written and is finished first. The events are a sequence of whole lines, and
 * new ones are appended. Nothing is allocated: the line buffer is a mapping, so that after a long
 * line (the boot configuration) its pages, which held secrets, are given back to the kernel.
 */
#include "init/host/control.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/memory.h"
#include "common/os/secret.h"

#define WAITED_PIECE 4096 /* PIPE_BUF: poll(2) guarantees space for that much */

int control_open(struct control *control)
{
    char *bytes = memory_reserve(CONTROL_LINE_MAX);

    if (!bytes)
        return -ENOMEM;
    line_buffer_init(&control->in, bytes, CONTROL_LINE_MAX);
    control->fd = control->out_fd = -1;
    return 0;
}

void control_attach(struct control *control, int fd)
{
    fd_close(&control->fd);
    control->fd = fd;
    control->in_how = control->out_how = CONTROL_IO_PLAIN;
    control->ended = false;
}

void control_attach_pair(struct control *control, int in, enum control_io in_how, int out,
                         enum control_io out_how)
{
    control_attach(control, in);
    fd_close(&control->out_fd);
    control->out_fd = out;
    control->in_how = in_how;
    control->out_how = out_how;
}

int control_write_fd(const struct control *control)
{
    return control->out_fd >= 0 ? control->out_fd : control->fd;
}

/* ---- reading and writing without blocking ---- */

static bool is_ready(int fd, short events)
{
    struct pollfd entry = {.fd = fd, .events = events};

    return poll(&entry, 1, 0) > 0;
}

static ssize_t channel_read(int fd, enum control_io how, void *out, size_t length)
{
    if (how == CONTROL_IO_SOCKET)
        return recv(fd, out, length, MSG_DONTWAIT);
    if (how == CONTROL_IO_WAITED && !is_ready(fd, POLLIN)) {
        errno = EAGAIN;
        return -1;
    }
    return read(fd, out, length);
}

static ssize_t channel_write(int fd, enum control_io how, const void *data, size_t length)
{
    if (how == CONTROL_IO_SOCKET)
        return send(fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (how == CONTROL_IO_WAITED) {
        if (!is_ready(fd, POLLOUT)) {
            errno = EAGAIN;
            return -1;
        }
        length = length < WAITED_PIECE ? length : WAITED_PIECE;
    }
    return write(fd, data, length);
}

/* ---- sending ---- */

struct json_writer *control_event_begin(struct control *control, const char *name,
                                        enum control_importance importance)
{
    struct json_writer *writer = &control->writer;

    if (control->events_start > 0 && control->writing != CONTROL_EVENTS) {
        control->events_end -= control->events_start;
        memmove(control->events, control->events + control->events_start, control->events_end);
        control->events_start = 0;
    }
    control->writer_may_lose = importance == CONTROL_MAY_LOSE;
    json_writer_start(writer, control->events + control->events_end,
                      sizeof(control->events) - control->events_end);
    json_write_object_begin(writer);
    json_member_string(writer, "event", name);
    return writer;
}

int control_event_end(struct control *control)
{
    json_write_object_end(&control->writer);
    int length = json_writer_finish(&control->writer, true);
    if (length < 0)
        return -ENOBUFS;
    if (control->writer_may_lose &&
        control->events_end + (size_t)length > sizeof(control->events) - CONTROL_EVENTS_RESERVE)
        return -ENOBUFS;
    control->events_end += (size_t)length;
    return 0;
}

bool control_output_free(const struct control *control)
{
    return control->output_end == 0;
}

void control_output_put(struct control *control, const char *stream, const void *data,
                        size_t length)
{
    struct json_writer writer;

    if ((control->ended && control->out_fd < 0) || !control_output_free(control) ||
        length > CONTROL_DATA_MAX)
        return;
    json_writer_start(&writer, control->output, sizeof(control->output));
    json_write_object_begin(&writer);
    json_member_string(&writer, "event", "output");
    json_member_string(&writer, "stream", stream);
    json_write_name(&writer, "data");
    json_write_base64(&writer, data, length);
    json_write_object_end(&writer);
    int written = json_writer_finish(&writer, true);
    control->output_start = 0;
    control->output_end = written > 0 ? (size_t)written : 0;
}

bool control_output_forget(struct control *control)
{
    bool some = control->writing != CONTROL_OUTPUT && !control_output_free(control);

    if (some)
        control->output_start = control->output_end = 0;
    return some;
}

bool control_wants_write(const struct control *control)
{
    return control_write_fd(control) >= 0 && (control->events_end > control->events_start ||
                                              control->output_end > control->output_start);
}

/* The next bytes to write, in the queue that becomes `writing`; NULL when both are empty. */
static const char *next_bytes(struct control *control, size_t *length)
{
    if (control->writing == CONTROL_IDLE)
        control->writing = control->events_end > control->events_start   ? CONTROL_EVENTS
                           : control->output_end > control->output_start ? CONTROL_OUTPUT
                                                                         : CONTROL_IDLE;
    switch (control->writing) {
    case CONTROL_EVENTS:
        *length = control->events_end - control->events_start;
        return control->events + control->events_start;
    case CONTROL_OUTPUT:
        *length = control->output_end - control->output_start;
        return control->output + control->output_start;
    case CONTROL_IDLE:
    case CONTROL_QUEUE_COUNT:
        break;
    }
    return NULL;
}

static void bytes_written(struct control *control, size_t length)
{
    size_t *start =
        control->writing == CONTROL_EVENTS ? &control->events_start : &control->output_start;
    size_t *end = control->writing == CONTROL_EVENTS ? &control->events_end : &control->output_end;

    *start += length;
    if (*start == *end) {
        *start = *end = 0;
        control->writing = CONTROL_IDLE;
    }
}

/* Nobody reads any more: queued lines are dropped, so that no producer waits for them. */
static int channel_ended(struct control *control, int error)
{
    control->ended = true;
    control->events_start = control->events_end = 0;
    control->output_start = control->output_end = 0;
    control->writing = CONTROL_IDLE;
    fd_close(&control->fd);
    fd_close(&control->out_fd);
    return -error;
}

void control_break_line(struct control *control)
{
    (void)channel_write(control_write_fd(control), control->out_how, "\n", 1);
}

int control_flush(struct control *control)
{
    const char *bytes;
    size_t length;

    if (control_write_fd(control) < 0)
        return control->ended ? -EPIPE : 0;
    while ((bytes = next_bytes(control, &length))) {
        ssize_t put = channel_write(control_write_fd(control), control->out_how, bytes,
                                    length < CONTROL_WRITE_MAX ? length : CONTROL_WRITE_MAX);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (put < 0)
            return channel_ended(control, errno);
        bytes_written(control, (size_t)put);
    }
    return 0;
}

/* ---- receiving ---- */

/* Gives the line buffer's pages back after a long line, while it is empty. */
static void trim_line_buffer(struct control *control)
{
    if (control->in.start != control->in.end || control->in_high <= 2 * CONTROL_READ_MAX)
        return;
    secret_wipe(control->in.bytes, control->in_high);
    madvise(control->in.bytes, CONTROL_LINE_MAX, MADV_DONTNEED);
    control->in_high = 0;
}

/* Nothing more is received, but events can still be sent over the other descriptor. */
static int input_ended(struct control *control, int error)
{
    control->ended = true;
    fd_close(&control->fd);
    return -error;
}

int control_receive(struct control *control)
{
    size_t room;
    ssize_t got;

    if (control->fd < 0)
        return control->ended ? -EPIPE : 0;
    trim_line_buffer(control);
    char *bytes = line_buffer_room(&control->in, &room);
    if (room == 0) { /* the line is too long: drop what was received of it */
        line_buffer_init(&control->in, control->in.bytes, CONTROL_LINE_MAX);
        bytes = line_buffer_room(&control->in, &room);
    }
    do
        got = channel_read(control->fd, control->in_how, bytes,
                           room < CONTROL_READ_MAX ? room : CONTROL_READ_MAX);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (got <= 0 && control->out_fd >= 0)
        return input_ended(control, got == 0 ? EPIPE : errno);
    if (got <= 0)
        return channel_ended(control, got == 0 ? EPIPE : errno);
    line_buffer_filled(&control->in, (size_t)got);
    if (control->in.end > control->in_high)
        control->in_high = control->in.end;
    return 0;
}

void control_end(struct control *control)
{
    (void)channel_ended(control, 0);
}

int control_next_line(struct control *control, char **line, size_t *length)
{
    return line_buffer_take(&control->in, line, length);
}
