/* The part of printf's formats that our messages use: what guest programs link instead of musl's, which
 * brings 10 KiB of floating point with it. */
#ifndef COMMON_TEXT_FORMAT_H
#define COMMON_TEXT_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* As vsnprintf(3): always NUL-terminated when size > 0, the result is the length that the whole text has.
 * Conversions d i u x X c s %, flags - and 0, width and precision (also *), lengths hh h l ll z j t.
 * Anything else is copied as it stands. */
int format_text(char *out, size_t size, const char *format, va_list arguments);

#endif
