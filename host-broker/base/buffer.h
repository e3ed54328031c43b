/* Buffers: a window of unread bytes in a block, and the pool of blocks.
 *
 * A connection holds at most two blocks (received, to be sent), an exchange one more while it
 * collects the head of an answer. The address space for all of them is reserved at the start, so
 * taking a block cannot fail. A block takes memory only where it was written; the memory is
 * returned when more than a few blocks are unused.
 */
#ifndef HOST_BROKER_BASE_BUFFER_H
#define HOST_BROKER_BASE_BUFFER_H

#include <stddef.h>
#include <string.h>

#include "common/os/failure.h"

/* Holds the head of a request of 64 KiB, the empty lines that are tolerated before it, and the
 * preface; a whole number of pages. */
#define BUFFER_BLOCK (68 * 1024)

struct buffer {
    char *bytes;       /* NULL while it has no block */
    size_t start, end; /* unread bytes are [start, end) */
};

struct buffer_pool {
    char *memory;
    char **unused; /* a stack: the block returned last is taken first */
    size_t unused_count, block_count;
};

int buffer_pool_open(struct buffer_pool *pool, size_t block_count, struct failure *why);

void buffer_pool_close(struct buffer_pool *pool);

/* Gives `buffer` a block when it has none. */
void buffer_take(struct buffer *buffer, struct buffer_pool *pool);

/* Returns its block, if it has one; unread bytes are lost. */
void buffer_give_back(struct buffer *buffer, struct buffer_pool *pool);

static inline size_t buffer_length(const struct buffer *buffer)
{
    return buffer->end - buffer->start;
}

static inline size_t buffer_room(const struct buffer *buffer)
{
    return buffer->bytes ? BUFFER_BLOCK - buffer_length(buffer) : 0;
}

static inline const char *buffer_front(const struct buffer *buffer)
{
    return buffer->bytes + buffer->start;
}

static inline void buffer_consume(struct buffer *buffer, size_t length)
{
    buffer->start += length;
    if (buffer->start == buffer->end)
        buffer->start = buffer->end = 0;
}

/* Moves the unread bytes to the beginning of the block, so that all room is behind them. */
static inline void buffer_compact(struct buffer *buffer)
{
    if (buffer->start == 0)
        return;
    memmove(buffer->bytes, buffer_front(buffer), buffer_length(buffer));
    buffer->end -= buffer->start;
    buffer->start = 0;
}

/* The caller has checked that there is room. */
static inline void buffer_append(struct buffer *buffer, const void *data, size_t length)
{
    if (BUFFER_BLOCK - buffer->end < length)
        buffer_compact(buffer);
    memcpy(buffer->bytes + buffer->end, data, length);
    buffer->end += length;
}

#endif
