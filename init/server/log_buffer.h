/* A bounded buffer of lines that never makes its writer wait: stdio mode `log`.
 *
 * A line that does not fit is dropped whole and counted; the lines before and after it stay whole.
 * Pure: no I/O.
 */
#ifndef INIT_SERVER_LOG_BUFFER_H
#define INIT_SERVER_LOG_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_BUFFER_SIZE (64 * 1024)

struct log_buffer {
    size_t start, line, end; /* [start, line) whole lines, [line, end) the beginning of one */
    bool dropping;           /* the rest of the line that is being written is dropped */
    int64_t dropped;         /* lines, since it was last asked */
    char bytes[LOG_BUFFER_SIZE];
};

/* Takes all bytes, or drops by the rule above. */
void log_buffer_write(struct log_buffer *buffer, const char *bytes, size_t length);

/* Bytes to send, at most `most`: whole lines; a piece of a line only when it is longer than that,
 * or when the buffer holds only the beginning of one (a prompt). NULL and 0 when empty. */
const char *log_buffer_peek(const struct log_buffer *buffer, size_t most, size_t *length);

/* Removes bytes that log_buffer_peek gave. */
void log_buffer_remove(struct log_buffer *buffer, size_t length);

/* Lines dropped since the last call. */
int64_t log_buffer_take_dropped(struct log_buffer *buffer);

/* Drops everything. Returns the lines dropped by it and since the last call of either function. */
int64_t log_buffer_drop_all(struct log_buffer *buffer);

#endif
