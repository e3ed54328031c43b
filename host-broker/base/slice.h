/* A run of bytes inside somebody else's buffer: what the broker's parsers hand out.
 *
 * A slice owns nothing, has no NUL behind it, and lives as long as the buffer it points into. The
 * empty slice is {NULL, 0} or any pointer with length 0; nothing here tells the two apart.
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

/* Byte for byte. */
static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* ASCII only, never the locale's. */
static inline char ascii_lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

/* Of a hexadecimal digit in either case; -1 of any other byte. */
static inline int ascii_hex_value(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    char lower = ascii_lower(byte);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Equal but for the case of ASCII letters: field names, codings, schemes, hosts. */
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
