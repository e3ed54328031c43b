/* Unsigned numbers in texts of the kernel's and the user's: no sign, no blanks, no prefix, no errno. */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

#include <stdint.h>

/* Reads the digits at the beginning of `text`, base 10 or 16. Returns what follows them; NULL when there is none, or the
 * value does not fit; *out is untouched then. */
const char *number_read(const char *text, unsigned base, uint32_t *out);

#endif
