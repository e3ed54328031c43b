/* Field lines and their characters. All parsers of the broker use this one table of byte classes,
 * so they agree about every byte.
 */
#include "host-broker/http/field.h"

#include <errno.h>

#define CLASS_TOKEN FIELD_CLASS_TOKEN
#define CLASS_VALUE FIELD_CLASS_VALUE

const uint8_t field_byte_classes[256] = {
    ['\t'] = CLASS_VALUE,
    [' '] = CLASS_VALUE,
    ['!'] = CLASS_TOKEN | CLASS_VALUE,
    ['"'] = CLASS_VALUE,
    ['#' ... '\''] = CLASS_TOKEN | CLASS_VALUE,
    ['(' ... ')'] = CLASS_VALUE,
    ['*' ... '+'] = CLASS_TOKEN | CLASS_VALUE,
    [','] = CLASS_VALUE,
    ['-' ... '.'] = CLASS_TOKEN | CLASS_VALUE,
    ['/'] = CLASS_VALUE,
    ['0' ... '9'] = CLASS_TOKEN | CLASS_VALUE,
    [':' ... '@'] = CLASS_VALUE,
    ['A' ... 'Z'] = CLASS_TOKEN | CLASS_VALUE,
    ['[' ... ']'] = CLASS_VALUE,
    ['^' ... 'z'] = CLASS_TOKEN | CLASS_VALUE,
    ['{'] = CLASS_VALUE,
    ['|'] = CLASS_TOKEN | CLASS_VALUE,
    ['}'] = CLASS_VALUE,
    ['~'] = CLASS_TOKEN | CLASS_VALUE,
    [0x80 ... 0xff] = CLASS_VALUE,
};

bool field_is_token(struct slice text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!field_is_token_byte((unsigned char)text.bytes[i]))
            return false;
    return text.length > 0;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

struct slice field_trim(struct slice text)
{
    while (text.length > 0 && is_blank(text.bytes[0])) {
        text.bytes++;
        text.length--;
    }
    while (text.length > 0 && is_blank(text.bytes[text.length - 1]))
        text.length--;
    return text;
}

bool field_list_next(struct slice *rest, struct slice *element)
{
    while (rest->length > 0) {
        const char *comma = memchr(rest->bytes, ',', rest->length);
        size_t length = comma ? (size_t)(comma - rest->bytes) : rest->length;
        size_t taken = comma ? length + 1 : length;
        *element = field_trim((struct slice){rest->bytes, length});
        rest->bytes += taken;
        rest->length -= taken;
        if (element->length > 0)
            return true;
    }
    return false;
}

bool field_list_has(struct slice list, struct slice token)
{
    struct slice element;
    while (field_list_next(&list, &element))
        if (slice_equal_nocase(element, token))
            return true;
    return false;
}

int field_parse_line(struct slice line, struct field *out)
{
    if (line.length > 0 && line.bytes[line.length - 1] == '\n')
        line.length--;
    if (line.length > 0 && line.bytes[line.length - 1] == '\r')
        line.length--;
    const char *colon = line.length > 0 ? memchr(line.bytes, ':', line.length) : NULL;
    if (!colon)
        return -EINVAL;
    struct slice name = {line.bytes, (size_t)(colon - line.bytes)};
    struct slice value = {colon + 1, line.length - name.length - 1};
    if (!field_is_token(name))
        return -EINVAL;
    for (size_t i = 0; i < value.length; i++)
        if (!field_is_value_byte((unsigned char)value.bytes[i]))
            return -EINVAL;
    *out = (struct field){name, field_trim(value)};
    return 0;
}
