/* The pool of blocks. */
#include "host-broker/base/buffer.h"

#include <errno.h>
#include <stdlib.h>

#include "common/os/memory.h"

#define BLOCKS_KEPT_WARM 128 /* more unused blocks than these hold no memory */

int buffer_pool_open(struct buffer_pool *pool, size_t block_count, struct failure *why)
{
    pool->block_count = pool->unused_count = block_count;
    pool->unused = calloc(block_count, sizeof(*pool->unused));
    pool->memory = memory_reserve(block_count * BUFFER_BLOCK);
    if (!pool->unused || !pool->memory)
        return failure_set(why, ENOMEM, "reserve %zu buffers", block_count);
    for (size_t i = 0; i < block_count; i++)
        pool->unused[i] = pool->memory + (block_count - 1 - i) * BUFFER_BLOCK;
    return 0;
}

void buffer_take(struct buffer *buffer, struct buffer_pool *pool)
{
    if (buffer->bytes)
        return;
    if (pool->unused_count == 0)
        abort(); /* the pool has a block for every holder: one was leaked */
    *buffer = (struct buffer){.bytes = pool->unused[--pool->unused_count]};
}

void buffer_give_back(struct buffer *buffer, struct buffer_pool *pool)
{
    if (!buffer->bytes)
        return;
    /* the blocks returned first were returned when few were taken, and kept their memory */
    size_t taken = pool->block_count - pool->unused_count;
    if (taken > BLOCKS_KEPT_WARM)
        memory_discard(buffer->bytes, BUFFER_BLOCK);
    pool->unused[pool->unused_count++] = buffer->bytes;
    *buffer = (struct buffer){0};
}

void buffer_pool_close(struct buffer_pool *pool)
{
    memory_free(pool->memory, pool->block_count * BUFFER_BLOCK);
    free(pool->unused);
}
