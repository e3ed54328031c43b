/* UTF-8 (RFC 3629): one character at a time, strictly. */
#ifndef COMMON_TEXT_UTF8_H
#define COMMON_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_LENGTH_MAX 4
#define UTF8_REPLACEMENT 0xfffdu /* in place of invalid bytes */

/* Decodes the character at the start of `length` > 0 bytes. Returns the number of its bytes, or 0
 * with *code untouched when they are not UTF-8: a lone continuation byte, a cut or overlong form, a
 * surrogate, a code above U+10FFFF. */
size_t utf8_decode(const char *text, size_t length, uint32_t *code);

/* Writes a Unicode scalar value (no surrogate, at most U+10FFFF); returns the number of bytes. */
size_t utf8_encode(char out[UTF8_LENGTH_MAX], uint32_t code);

#endif
