/* UTF-8 by the table of RFC 3629 section 4: the first byte determines the length and the range of
 * the second byte. That range excludes overlong forms, surrogates and codes above U+10FFFF, so
 * nothing needs to be checked after decoding.
 */
#include "common/text/utf8.h"

struct sequence {
    uint8_t first_low, first_high;   /* the first byte's range */
    uint8_t second_low, second_high; /* the second byte's */
    uint8_t length;
    uint8_t mask; /* the bits of the first byte that belong to the code */
};

static const struct sequence sequences[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2, 0x1f}, {0xe0, 0xe0, 0xa0, 0xbf, 3, 0x0f},
    {0xe1, 0xec, 0x80, 0xbf, 3, 0x0f}, {0xed, 0xed, 0x80, 0x9f, 3, 0x0f},
    {0xee, 0xef, 0x80, 0xbf, 3, 0x0f}, {0xf0, 0xf0, 0x90, 0xbf, 4, 0x07},
    {0xf1, 0xf3, 0x80, 0xbf, 4, 0x07}, {0xf4, 0xf4, 0x80, 0x8f, 4, 0x07},
};

static size_t decode_sequence(const struct sequence *form, const uint8_t *bytes, size_t length,
                              uint32_t *code)
{
    if (length < form->length || bytes[1] < form->second_low || bytes[1] > form->second_high)
        return 0;
    uint32_t value = bytes[0] & form->mask;
    for (size_t i = 1; i < form->length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (bytes[i] & 0x3f);
    }
    *code = value;
    return form->length;
}

size_t utf8_decode(const char *text, size_t length, uint32_t *code)
{
    const uint8_t *bytes = (const uint8_t *)text;
    if (bytes[0] < 0x80) {
        *code = bytes[0];
        return 1;
    }
    for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++)
        if (bytes[0] >= sequences[i].first_low && bytes[0] <= sequences[i].first_high)
            return decode_sequence(&sequences[i], bytes, length, code);
    return 0;
}

size_t utf8_encode(char out[UTF8_LENGTH_MAX], uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t marks[UTF8_LENGTH_MAX + 1] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(marks[length] | code);
    return length;
}
