/* Buffers that end at an inaccessible page: a parser that reads or writes one byte too far gets
 * SIGSEGV. */
#ifndef TEST_HARNESS_GUARD_H
#define TEST_HARNESS_GUARD_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static inline size_t guard_span(size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (length + page - 1) / page * page;
}

/* `length` bytes that end at the guard page; to be given to guard_free with the same length. */
static inline void *guard_alloc(size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), span = guard_span(length);
    char *memory =
        mmap(NULL, span + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + span, page, PROT_NONE) < 0)
        abort();
    return memory + span - length;
}

static inline void *guard_copy(const void *bytes, size_t length)
{
    void *copy = guard_alloc(length);
    if (length > 0)
        memcpy(copy, bytes, length);
    return copy;
}

static inline void guard_free(void *buffer, size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), span = guard_span(length);
    munmap((char *)buffer + length - span, span + page);
}

#endif
