/* The framing of an answer's chunks. */
#include "host-broker/http/chunk_encoder.h"

#include <errno.h>

size_t chunk_head_write(char out[CHUNK_HEAD_MAX], uint64_t length)
{
    static const char digits[] = "0123456789abcdef";
    size_t count = 1;
    while (count < 16 && length >> (4 * count) != 0)
        count++;
    for (size_t i = 0; i < count; i++)
        out[i] = digits[length >> (4 * (count - 1 - i)) & 15];
    out[count] = '\r';
    out[count + 1] = '\n';
    return count + 2;
}

static bool append(char *out, size_t size, size_t *length, struct slice text)
{
    if (size - *length < text.length)
        return false;
    if (text.length > 0)
        memcpy(out + *length, text.bytes, text.length);
    *length += text.length;
    return true;
}

int chunk_last_write(char *out, size_t size, const struct field *trailers, size_t count)
{
    size_t length = 0;
    bool fits = append(out, size, &length, SLICE_LITERAL("0\r\n"));
    for (size_t i = 0; i < count; i++)
        fits = fits && append(out, size, &length, trailers[i].name) &&
               append(out, size, &length, SLICE_LITERAL(": ")) &&
               append(out, size, &length, trailers[i].value) &&
               append(out, size, &length, SLICE_LITERAL("\r\n"));
    return fits && append(out, size, &length, SLICE_LITERAL("\r\n")) ? (int)length : -ENOSPC;
}
