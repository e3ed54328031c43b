/* A formatter without floating point, locale and streams: see format.h.
 *
 * One pass over the format. A conversion is read into a `struct conversion`, its value becomes a run of
 * characters, and one function pads and appends it; text beyond the buffer is counted and not written.
 */
#include "common/text/format.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DIGITS_MAX 20 /* of a 64-bit number in base 10 */

struct output {
    char *bytes;
    size_t size, length; /* length may go beyond size */
};

struct conversion {
    bool left, zero;
    int width, precision; /* precision -1: none given */
    int size;             /* bytes of the integer argument */
    char letter;
};

static void append(struct output *output, char byte)
{
    if (output->length + 1 < output->size)
        output->bytes[output->length] = byte;
    output->length++;
}

static void append_many(struct output *output, char byte, int count)
{
    for (; count > 0; count--)
        append(output, byte);
}

static void append_bytes(struct output *output, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        append(output, bytes[i]);
}

/* Text with its sign or nothing before it, padded to the conversion's width. */
static void append_padded(struct output *output, const struct conversion *conversion,
                          const char *sign, const char *text, size_t length, int zeros)
{
    int padding = conversion->width - (int)(strlen(sign) + length) - (zeros > 0 ? zeros : 0);

    if (!conversion->left && !conversion->zero)
        append_many(output, ' ', padding);
    append_bytes(output, sign, strlen(sign));
    if (!conversion->left && conversion->zero)
        append_many(output, '0', padding);
    append_many(output, '0', zeros);
    append_bytes(output, text, length);
    if (conversion->left)
        append_many(output, ' ', padding);
}

static void append_number(struct output *output, struct conversion *conversion, const char *sign,
                          uint64_t value)
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    const char *digits = conversion->letter == 'X' ? upper : lower;
    unsigned base = conversion->letter == 'x' || conversion->letter == 'X' ? 16 : 10;
    char text[DIGITS_MAX];
    int length = 0;

    while (value > 0 || (length == 0 && conversion->precision != 0)) {
        text[DIGITS_MAX - ++length] = digits[value % base];
        value /= base;
    }
    if (conversion->precision >= 0)
        conversion->zero = false;
    append_padded(output, conversion, sign, text + DIGITS_MAX - length, (size_t)length,
                  conversion->precision - length);
}

static void append_string(struct output *output, struct conversion *conversion, const char *text)
{
    size_t most = conversion->precision < 0 ? SIZE_MAX : (size_t)conversion->precision, length = 0;

    text = text != NULL ? text : "(null)";
    while (length < most && text[length] != '\0')
        length++;
    conversion->zero = false;
    append_padded(output, conversion, "", text, length, 0);
}

/* ---- reading a conversion ---- */

struct reader {
    const char *at; /* in the format */
    va_list arguments;
};

static int read_count(struct reader *reader)
{
    int count = 0;

    if (*reader->at == '*') {
        reader->at++;
        return va_arg(reader->arguments, int);
    }
    while (*reader->at >= '0' && *reader->at <= '9' && count < INT_MAX / 10 - 1)
        count = count * 10 + *reader->at++ - '0';
    return count;
}

static int read_size(struct reader *reader)
{
    switch (*reader->at) {
    case 'l':
        reader->at += reader->at[1] == 'l' ? 2 : 1;
        return sizeof(long); /* long long is as long on our machines */
    case 'h':
        reader->at += reader->at[1] == 'h' ? 2 : 1;
        return reader->at[-2] == 'h' ? sizeof(char) : sizeof(short);
    case 'z':
    case 'j':
    case 't':
        reader->at++;
        return sizeof(size_t);
    }
    return sizeof(int);
}
_Static_assert(sizeof(long) == sizeof(long long) && sizeof(long) == sizeof(size_t), "LP64");

static void read_conversion(struct reader *reader, struct conversion *conversion)
{
    *conversion = (struct conversion){.precision = -1};
    for (; *reader->at == '-' || *reader->at == '0'; reader->at++) {
        conversion->left |= *reader->at == '-';
        conversion->zero |= *reader->at == '0';
    }
    conversion->width = read_count(reader);
    if (conversion->width < 0) {
        conversion->left = true;
        conversion->width = -conversion->width;
    }
    if (*reader->at == '.') {
        reader->at++;
        conversion->precision = read_count(reader);
    }
    conversion->size = read_size(reader);
    conversion->letter = *reader->at;
    if (conversion->letter != '\0')
        reader->at++;
}

static int64_t read_signed(struct reader *reader, int size)
{
    if (size == sizeof(long))
        return va_arg(reader->arguments, long);
    int value = va_arg(reader->arguments, int);
    return size == sizeof(char) ? (signed char)value : size == sizeof(short) ? (short)value : value;
}

static uint64_t read_unsigned(struct reader *reader, int size)
{
    if (size == sizeof(long))
        return va_arg(reader->arguments, unsigned long);
    unsigned value = va_arg(reader->arguments, unsigned);
    return size == sizeof(char)    ? (unsigned char)value
           : size == sizeof(short) ? (unsigned short)value
                                   : value;
}

/* False for a letter that is none of ours: nothing is taken from the arguments then. */
static bool convert(struct output *output, struct reader *reader, struct conversion *conversion)
{
    int64_t value;
    char character;

    switch (conversion->letter) {
    case 'd':
    case 'i':
        value = read_signed(reader, conversion->size);
        append_number(output, conversion, value < 0 ? "-" : "",
                      value < 0 ? -(uint64_t)value : (uint64_t)value);
        return true;
    case 'u':
    case 'x':
    case 'X':
        append_number(output, conversion, "", read_unsigned(reader, conversion->size));
        return true;
    case 'c':
        character = (char)va_arg(reader->arguments, int);
        append_padded(output, conversion, "", &character, 1, 0);
        return true;
    case 's':
        append_string(output, conversion, va_arg(reader->arguments, const char *));
        return true;
    case '%':
        append(output, '%');
        return true;
    }
    return false;
}

int format_text(char *out, size_t size, const char *format, va_list arguments)
{
    struct output output = {.bytes = out, .size = size};
    struct reader reader = {.at = format};
    struct conversion conversion;

    va_copy(reader.arguments, arguments);
    while (*reader.at != '\0') {
        const char *start = reader.at++;
        if (*start != '%') {
            append(&output, *start);
            continue;
        }
        read_conversion(&reader, &conversion);
        if (!convert(&output, &reader, &conversion))
            append_bytes(&output, start, (size_t)(reader.at - start));
    }
    va_end(reader.arguments);
    if (size > 0)
        out[output.length < size ? output.length : size - 1] = '\0';
    return output.length <= INT_MAX ? (int)output.length : INT_MAX;
}
