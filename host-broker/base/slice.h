/* A slice: a run of bytes inside a buffer that somebody else owns. Parsers return slices.
 *
 * A slice has no terminating NUL and is valid as long as its buffer. Every slice of length 0 is
 * empty, whatever its pointer.
 */
#ifndef HOST_BROKER_BASE_SLICE_H
#define HOST_BROKER_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *bytes;
    size_t length;
};

#define SLICE_LITERAL(text) ((struct slice){(text), sizeof(text) - 1})

static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* ASCII only, independent of the locale. */
static inline char ascii_lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

/* The value of a hexadecimal digit of either case, or -1. */
static inline int ascii_hex_value(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    char lower = ascii_lower(byte);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Compares without regard to the case of ASCII letters: for field names, codings, schemes,
 * hosts. */
static inline bool slice_equal_nocase(struct slice a, struct slice b)
{
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (ascii_lower(a.bytes[i]) != ascii_lower(b.bytes[i]))
            return false;
    return true;
}

#endif
