/* A bounded buffer of lines.
 *
 * The bytes from `start` to `end` are moved to the front when space is needed. A line is written
 * behind `line` and counts once its newline is there. When the buffer is full in the middle of a
 * line, the line is removed and the rest up to its newline is skipped; a line that fills the whole
 * buffer by itself is cut into pieces instead, each of which counts as a line.
 */
#include "init/server/log_buffer.h"

#include <string.h>

static void make_room(struct log_buffer *buffer)
{
    memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->end - buffer->start);
    buffer->line -= buffer->start;
    buffer->end -= buffer->start;
    buffer->start = 0;
}

/* A piece of one line, without or with its newline as the last byte. */
static void write_piece(struct log_buffer *buffer, const char *bytes, size_t length, bool whole)
{
    if (!buffer->dropping && buffer->start > 0 && length > sizeof(buffer->bytes) - buffer->end)
        make_room(buffer);
    if (!buffer->dropping && length > sizeof(buffer->bytes) - buffer->end) {
        buffer->end = buffer->line;
        buffer->dropping = true;
        buffer->dropped++;
    }
    if (!buffer->dropping) {
        memcpy(buffer->bytes + buffer->end, bytes, length);
        buffer->end += length;
        bool full_of_one_line = buffer->end - buffer->start == sizeof(buffer->bytes);
        if (whole || (full_of_one_line && buffer->line == buffer->start))
            buffer->line = buffer->end;
    } else if (whole) {
        buffer->dropping = false;
    }
}

void log_buffer_write(struct log_buffer *buffer, const char *bytes, size_t length)
{
    while (length > 0) {
        const char *newline = memchr(bytes, '\n', length);
        size_t piece = newline ? (size_t)(newline - bytes) + 1 : length;
        size_t free_of_one_line = sizeof(buffer->bytes) - (buffer->end - buffer->start);
        bool whole = newline;
        /* a line that is alone in the buffer is cut only when the buffer is full */
        if (!buffer->dropping && buffer->line == buffer->start && free_of_one_line > 0 &&
            piece > free_of_one_line) {
            piece = free_of_one_line;
            whole = false;
        }
        write_piece(buffer, bytes, piece, whole);
        bytes += piece;
        length -= piece;
    }
}

const char *log_buffer_peek(const struct log_buffer *buffer, size_t most, size_t *length)
{
    const char *bytes = buffer->bytes + buffer->start;
    size_t ready = (buffer->line > buffer->start ? buffer->line : buffer->end) - buffer->start;

    if (ready > most) {
        const char *newline = memrchr(bytes, '\n', most);
        ready = newline ? (size_t)(newline - bytes) + 1 : most;
    }
    *length = ready;
    return ready > 0 ? bytes : NULL;
}

void log_buffer_remove(struct log_buffer *buffer, size_t length)
{
    buffer->start += length;
    if (buffer->line < buffer->start)
        buffer->line = buffer->start;
    if (buffer->start == buffer->end)
        buffer->start = buffer->line = buffer->end = 0;
}

int64_t log_buffer_take_dropped(struct log_buffer *buffer)
{
    int64_t dropped = buffer->dropped;

    buffer->dropped = 0;
    return dropped;
}

int64_t log_buffer_drop_all(struct log_buffer *buffer)
{
    int64_t lines = log_buffer_take_dropped(buffer);

    lines += buffer->end > buffer->line; /* the beginning of a line */
    for (size_t at = buffer->start; at < buffer->line; at++)
        lines += buffer->bytes[at] == '\n';
    buffer->start = buffer->line = buffer->end = 0;
    return lines;
}
