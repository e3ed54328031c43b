/* strtoul(3) for guest programs, where its 3 KiB count, and printf(3) where its time counts. */
#include "common/text/number.h"

#include <string.h>

static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

const char *number_read(const char *text, unsigned base, uint32_t *out)
{
    const char *here = text;
    uint64_t value = 0;

    for (; digit_value(*here) < base; here++) {
        value = value * base + digit_value(*here);
        if (value > UINT32_MAX)
            return NULL;
    }
    if (here == text)
        return NULL;
    *out = (uint32_t)value;
    return here;
}

size_t number_write(char out[NUMBER_DIGITS_MAX], uint64_t value)
{
    char digits[NUMBER_DIGITS_MAX];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    memcpy(out, digits + at, sizeof(digits) - at);
    return sizeof(digits) - at;
}
