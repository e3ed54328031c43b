/* Secrets: made from the kernel's generator, compared in constant time, wiped. */
#ifndef COMMON_OS_SECRET_H
#define COMMON_OS_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#define SECRET_BYTES 32
#define SECRET_HEX_LENGTH 64 /* characters of a token or way-in secret, without NUL */

/* Fills `out` from the kernel's generator, once that is seeded. 0 or a negative errno. */
int secret_random(void *out, size_t length);

/* 64 lower-case hex digits and a NUL. 0 or a negative errno. */
int secret_make_hex(char out[SECRET_HEX_LENGTH + 1]);

/* True when the text is 64 lower-case hex digits. */
bool secret_is_hex(const char *text);

/* Compares `length` bytes in a time that depends on `length` only. */
bool secret_equal(const void *a, const void *b, size_t length);

/* Overwrites memory in a way the compiler keeps. */
void secret_wipe(void *memory, size_t length);

#endif
