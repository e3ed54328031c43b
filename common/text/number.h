/* Unsigned numbers in texts. Stricter than strtoul(3): no sign, no blanks, no prefix. */
#ifndef COMMON_TEXT_NUMBER_H
#define COMMON_TEXT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Reads the digits at the beginning of `text`, base 10 or 16. Returns the text behind them, or NULL
 * when there is none or the value does not fit; *out is untouched then. */
const char *number_read(const char *text, unsigned base, uint32_t *out);

#endif
