/* Buffers lines and writes whole ones without waiting. */
#include "host-broker/base/line_sink.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

void line_sink_init(struct line_sink *sink, int fd)
{
    sink->fd = fd;
    sink->is_file = false;
    sink->length = 0;
    sink->dropped = 0;
}

void line_sink_add(struct line_sink *sink, const char *line, size_t length)
{
    if (sink->fd < 0)
        return;
    if (length > LINE_SINK_LINE_MAX || sink->length + length > sizeof(sink->buffer)) {
        sink->dropped++;
        return;
    }
    memcpy(sink->buffer + sink->length, line, length);
    sink->length += length;
}

/* The length of the whole lines that one atomic write can take. */
static size_t next_piece(const struct line_sink *sink)
{
    if (sink->length <= LINE_SINK_LINE_MAX)
        return sink->length;
    const char *end = memrchr(sink->buffer, '\n', LINE_SINK_LINE_MAX);
    return end ? (size_t)(end - sink->buffer) + 1 : LINE_SINK_LINE_MAX;
}

static bool may_write(const struct line_sink *sink)
{
    struct pollfd poll_fd = {.fd = sink->fd, .events = POLLOUT};
    return sink->is_file || (poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLOUT) != 0);
}

size_t line_sink_flush(struct line_sink *sink)
{
    size_t total = 0;
    while (sink->length > 0) {
        if (!may_write(sink))
            break;
        ssize_t written = write(sink->fd, sink->buffer, next_piece(sink));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            if (errno == EPIPE)
                sink->fd = -1; /* the reader has closed the pipe */
            break;
        }
        total += (size_t)written;
        sink->length -= (size_t)written;
        memmove(sink->buffer, sink->buffer + written, sink->length);
    }
    return total;
}
