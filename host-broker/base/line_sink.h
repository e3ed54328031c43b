/* Writes whole lines to a descriptor without waiting, even to a pipe that nobody reads.
 *
 * A line has at most LINE_SINK_LINE_MAX bytes. A write(2) of whole lines up to that size is atomic
 * on a pipe and does not block after poll(2) has reported room (pipe(7), PIPE_BUF). Lines that do
 * not fit into the buffer are dropped and counted; the caller reports the count when there is room
 * again.
 */
#ifndef HOST_BROKER_BASE_LINE_SINK_H
#define HOST_BROKER_BASE_LINE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_SINK_LINE_MAX 4096
#define LINE_SINK_BUFFER (64 * 1024)

struct line_sink {
    int fd;       /* -1: every line is dropped, without a count */
    bool is_file; /* a regular file: writing never waits for a reader */
    size_t length;
    uint64_t dropped; /* lines, since the caller last set it to 0 */
    char buffer[LINE_SINK_BUFFER];
};

void line_sink_init(struct line_sink *sink, int fd);

/* Adds a line; its newline is included. */
void line_sink_add(struct line_sink *sink, const char *line, size_t length);

/* Writes what can be written without waiting; returns the number of bytes. */
size_t line_sink_flush(struct line_sink *sink);

static inline bool line_sink_is_empty(const struct line_sink *sink)
{
    return sink->length == 0;
}

#endif
