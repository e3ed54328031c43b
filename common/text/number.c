/* Digits to numbers. */
#include "common/text/number.h"

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
