/* malloc(3) and its kin out of a fixed pool: codev-init has no heap.
 *
 * None of our own code allocates. Two libraries' functions that we use do, a few small objects at a
 * time: libmnl for its sockets, musl for a directory that is being read. They get blocks of one
 * size from here; when all are taken, or more is wanted than a block holds, the answer is "no
 * memory", which both pass on as an error. musl's own allocator would cost 8 KiB of program.
 */
#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 8
#define BLOCK_SIZE 2304 /* musl's DIR has 2 KiB of entries */

static alignas(16) char blocks[BLOCKS][BLOCK_SIZE];
static bool taken[BLOCKS];

void *malloc(size_t size)
{
    for (unsigned number = 0; size <= BLOCK_SIZE && number < BLOCKS; number++) {
        if (taken[number])
            continue;
        taken[number] = true;
        return blocks[number];
    }
    errno = ENOMEM;
    return NULL;
}

void free(void *pointer)
{
    if (pointer)
        taken[((char *)pointer - blocks[0]) / BLOCK_SIZE] = false;
}

void *calloc(size_t count, size_t size)
{
    bool fits = size == 0 || count <= BLOCK_SIZE / size;
    void *pointer = malloc(fits ? count * size : BLOCK_SIZE + 1); /* too much: refused there */

    if (pointer)
        memset(pointer, 0, count * size);
    return pointer;
}

void *realloc(void *pointer, size_t size)
{
    if (!pointer)
        return malloc(size);
    if (size <= BLOCK_SIZE)
        return pointer;
    errno = ENOMEM;
    return NULL;
}
