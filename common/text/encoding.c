/* Base64 and hexadecimal. Decoding is strict: exactly one text is accepted for each byte string, so
 * that a token or a block of data cannot be written in two ways.
 */
#include "common/text/encoding.h"

#include <errno.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char hex_digits[] = "0123456789abcdef";

size_t base64_encode(char *out, const void *data, size_t length)
{
    const uint8_t *bytes = data;
    char *to = out;
    for (; length >= 3; length -= 3, bytes += 3) {
        *to++ = base64_digits[bytes[0] >> 2];
        *to++ = base64_digits[(bytes[0] & 3) << 4 | bytes[1] >> 4];
        *to++ = base64_digits[(bytes[1] & 15) << 2 | bytes[2] >> 6];
        *to++ = base64_digits[bytes[2] & 63];
    }
    if (length > 0) {
        unsigned first = bytes[0], second = length == 2 ? bytes[1] : 0;
        *to++ = base64_digits[first >> 2];
        *to++ = base64_digits[(first & 3) << 4 | second >> 4];
        *to++ = length == 2 ? base64_digits[(second & 15) << 2] : '=';
        *to++ = '=';
    }
    return (size_t)(to - out);
}

/* The value of each digit plus one; 0: not a digit. */
static const uint8_t base64_values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

static int base64_value(char digit)
{
    return base64_values[(unsigned char)digit] - 1;
}

/* One group of four digits, of which the last `padding` are '='. Returns its 24 bits or -EINVAL. */
static int base64_group(const char *text, size_t padding)
{
    int bits = 0;
    for (size_t i = 0; i < 4; i++) {
        int value = i < 4 - padding ? base64_value(text[i]) : 0;
        if (value < 0)
            return -EINVAL;
        bits = bits << 6 | value;
    }
    /* unused bits must be zero: one text for each byte string */
    return (bits & ((1 << (8 * padding)) - 1)) != 0 ? -EINVAL : bits;
}

int base64_decode(void *out, size_t size, const char *text, size_t length)
{
    if (length % 4 != 0 || length / 4 > INT32_MAX / 3)
        return -EINVAL;
    size_t padding = 0;
    if (length > 0 && text[length - 1] == '=')
        padding = text[length - 2] == '=' ? 2 : 1;
    if (length / 4 * 3 - padding > size)
        return -ENOSPC;

    uint8_t *to = out; /* never ahead of the bytes read: `out` may be `text` */
    for (size_t i = 0; i < length; i += 4) {
        size_t missing = i + 4 == length ? padding : 0;
        int bits = base64_group(text + i, missing);
        if (bits < 0)
            return bits;
        for (size_t byte = 0; byte < 3 - missing; byte++)
            *to++ = (uint8_t)(bits >> (16 - 8 * byte));
    }
    return (int)(to - (uint8_t *)out);
}

void hex_encode(char *out, const void *data, size_t length)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < length; i++) {
        out[2 * i] = hex_digits[bytes[i] >> 4];
        out[2 * i + 1] = hex_digits[bytes[i] & 15];
    }
    out[2 * length] = '\0';
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

int hex_decode(void *out, size_t length, const char *text, size_t text_length)
{
    if (text_length != 2 * length)
        return -EINVAL;
    for (size_t i = 0; i < text_length; i++)
        if (hex_value(text[i]) < 0)
            return -EINVAL;
    uint8_t *bytes = out;
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(hex_value(text[2 * i]) << 4 | hex_value(text[2 * i + 1]));
    return 0;
}
