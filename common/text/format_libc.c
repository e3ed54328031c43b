/* Guest programs: snprintf and vsnprintf by our own formatter instead of musl's (format.h). */
#include "common/text/format.h"

#include <stdio.h>

int vsnprintf(char *restrict out, size_t size, const char *restrict format, va_list arguments)
{
    return format_text(out, size, format, arguments);
}

int snprintf(char *restrict out, size_t size, const char *restrict format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = format_text(out, size, format, arguments);
    va_end(arguments);
    return length;
}
