/* Splits a stream into lines. Bytes move to the front of the buffer only when the caller asks for
 * room, and then only those of the incomplete last line. The search for a newline reads each byte
 * once.
 */
#include "common/text/line_buffer.h"

#include <errno.h>
#include <string.h>

void line_buffer_init(struct line_buffer *buffer, char *bytes, size_t size)
{
    *buffer = (struct line_buffer){.bytes = bytes, .size = size};
}

char *line_buffer_room(struct line_buffer *buffer, size_t *length)
{
    if (buffer->start > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->end - buffer->start);
        buffer->end -= buffer->start;
        buffer->scanned -= buffer->start;
        buffer->start = 0;
    }
    *length = buffer->size - buffer->end;
    return buffer->bytes + buffer->end;
}

void line_buffer_filled(struct line_buffer *buffer, size_t length)
{
    buffer->end += length;
}

int line_buffer_take(struct line_buffer *buffer, char **line, size_t *length)
{
    char *from = buffer->bytes + buffer->scanned;
    char *newline = memchr(from, '\n', buffer->end - buffer->scanned);
    if (!newline) {
        buffer->scanned = buffer->end;
        return buffer->end - buffer->start == buffer->size ? -EMSGSIZE : 0;
    }
    *newline = '\0';
    *line = buffer->bytes + buffer->start;
    *length = (size_t)(newline - *line);
    buffer->start = buffer->scanned = (size_t)(newline - buffer->bytes) + 1;
    return 1;
}
