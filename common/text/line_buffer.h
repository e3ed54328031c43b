/* Splits a byte stream into lines of bounded length, as on the control channel (doc/design.md,
 * "Control channel").
 *
 * The caller reads into the free room, then takes lines until there is none. A line is returned
 * without its newline, NUL-terminated in place, valid until the next call. A line longer than the
 * buffer is an error, after which the stream cannot be read further.
 */
#ifndef COMMON_TEXT_LINE_BUFFER_H
#define COMMON_TEXT_LINE_BUFFER_H

#include <stddef.h>

struct line_buffer {
    char *bytes; /* the caller's, `size` long */
    size_t size;
    size_t start, end; /* unread bytes are [start, end) */
    size_t scanned;    /* there is no newline before this */
};

void line_buffer_init(struct line_buffer *buffer, char *bytes, size_t size);

/* Where and how much to read next. 0 only when a line fills the whole buffer. */
char *line_buffer_room(struct line_buffer *buffer, size_t *length);
void line_buffer_filled(struct line_buffer *buffer, size_t length);

/* 1 and the line; 0 when more bytes are needed; -EMSGSIZE when the line is longer than the
 * buffer. */
int line_buffer_take(struct line_buffer *buffer, char **line, size_t *length);

#endif
