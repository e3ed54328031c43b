/* Unsigned numbers in texts: no sign, no blanks, no prefix, no errno, no locale. */
#ifndef COMMON_TEXT_NUMBER_H
#define COMMON_TEXT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Reads the digits at the beginning of `text`, base 10 or 16. Returns what follows them; NULL when there is none, or the
 * value does not fit; *out is untouched then. */
const char *number_read(const char *text, unsigned base, uint32_t *out);

#define NUMBER_DIGITS_MAX 20 /* of 64 bits */

/* Writes `value` in base 10 without a NUL; returns the number of digits. */
size_t number_write(char out[NUMBER_DIGITS_MAX], uint64_t value);

#endif
