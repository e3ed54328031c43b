/* Base64 (RFC 4648 section 4) and lower-case hexadecimal. */
#ifndef COMMON_TEXT_ENCODING_H
#define COMMON_TEXT_ENCODING_H

#include <stddef.h>
#include <stdint.h>

#define BASE64_LENGTH(bytes) (((bytes) + 2) / 3 * 4)

/* Writes BASE64_LENGTH(length) characters, no NUL; returns that number. */
size_t base64_encode(char *out, const void *data, size_t length);

/* Strict: padded, canonical, no white space. Writes at most `size` bytes and returns their number,
 * or -EINVAL, -ENOSPC. `out` may be `text`: decoding in place works. */
int base64_decode(void *out, size_t size, const char *text, size_t length);

/* Writes 2 * length characters and a NUL. */
void hex_encode(char *out, const void *data, size_t length);

/* Exactly 2 * length lower-case digits: 0 or -EINVAL. */
int hex_decode(void *out, size_t length, const char *text, size_t text_length);

#endif
