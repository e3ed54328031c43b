/* How JSON and HTML write the characters of a text: see rewrite_link.h. */
#include <stdint.h>

#include "common/text/utf8.h"
#include "host-broker/rewrite/rewrite_link.h"

/* "\uXXXX": its 16 bits, or -1. */
static int32_t read_unit(struct slice rest)
{
    int32_t unit = 0;
    if (rest.length < 6 || rest.bytes[0] != '\\' || rest.bytes[1] != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        int digit = ascii_hex_value(rest.bytes[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

static size_t read_json_unicode(struct slice rest, char bytes[REWRITE_CHARACTER_MAX], size_t *count)
{
    int32_t code = read_unit(rest);
    size_t taken = 6;
    if (code < 0 || (code >= 0xdc00 && code <= 0xdfff))
        return 0;
    if (code >= 0xd800 && code <= 0xdbff) {
        int32_t low = read_unit((struct slice){rest.bytes + 6, rest.length - 6});
        if (low < 0xdc00 || low > 0xdfff)
            return 0;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        taken = 12;
    }
    *count = utf8_encode(bytes, (uint32_t)code);
    return taken;
}

static size_t read_json(struct slice rest, char bytes[REWRITE_CHARACTER_MAX], size_t *count)
{
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* pairs: letter, meaning */
    bytes[0] = rest.bytes[0];
    *count = 1;
    if (rest.bytes[0] != '\\')
        return 1;
    if (rest.length < 2)
        return 0;
    if (rest.bytes[1] == 'u')
        return read_json_unicode(rest, bytes, count);
    for (size_t i = 0; i + 1 < sizeof(escapes) - 1; i += 2) {
        if (rest.bytes[1] == escapes[i]) {
            bytes[0] = escapes[i + 1];
            return 2;
        }
    }
    return 0;
}

const struct rewrite_notation rewrite_json_notation = {.read = read_json};

/* Named references for characters that a URL is made of, with their semicolons. */
static const struct {
    struct slice name;
    char byte;
} named[] = {
    {SLICE_LITERAL("amp;"), '&'},    {SLICE_LITERAL("AMP;"), '&'},
    {SLICE_LITERAL("sol;"), '/'},    {SLICE_LITERAL("colon;"), ':'},
    {SLICE_LITERAL("period;"), '.'}, {SLICE_LITERAL("num;"), '#'},
    {SLICE_LITERAL("quest;"), '?'},  {SLICE_LITERAL("equals;"), '='},
    {SLICE_LITERAL("commat;"), '@'}, {SLICE_LITERAL("lowbar;"), '_'},
    {SLICE_LITERAL("percnt;"), '%'}, {SLICE_LITERAL("plus;"), '+'},
    {SLICE_LITERAL("bsol;"), '\\'},  {SLICE_LITERAL("lsqb;"), '['},
    {SLICE_LITERAL("rsqb;"), ']'},   {SLICE_LITERAL("excl;"), '!'},
    {SLICE_LITERAL("semi;"), ';'},   {SLICE_LITERAL("comma;"), ','},
    {SLICE_LITERAL("Tab;"), '\t'},   {SLICE_LITERAL("NewLine;"), '\n'},
    {SLICE_LITERAL("lt;"), '<'},     {SLICE_LITERAL("gt;"), '>'},
    {SLICE_LITERAL("quot;"), '"'},   {SLICE_LITERAL("apos;"), '\''},
};

/* "&#47;", "&#x2F;", with or without the semicolon. What is no character stays as it is written. */
static size_t read_number(struct slice rest, char bytes[REWRITE_CHARACTER_MAX], size_t *count)
{
    size_t at = 2;
    uint32_t code = 0, base = 10;
    if (at < rest.length && (rest.bytes[at] == 'x' || rest.bytes[at] == 'X')) {
        base = 16;
        at++;
    }
    size_t digits = at;
    for (; at < rest.length; at++) {
        int digit = ascii_hex_value(rest.bytes[at]);
        if (digit < 0 || digit >= (int)base)
            break;
        code = code < 0x110000 ? code * base + (uint32_t)digit : code;
    }
    if (at == digits)
        return 1;
    if (at < rest.length && rest.bytes[at] == ';')
        at++;
    if (code == 0 || code >= 0x110000 || (code >= 0xd800 && code <= 0xdfff))
        code = UTF8_REPLACEMENT;
    *count = utf8_encode(bytes, code);
    return at;
}

static size_t read_html(struct slice rest, char bytes[REWRITE_CHARACTER_MAX], size_t *count)
{
    bytes[0] = rest.bytes[0];
    *count = 1;
    if (rest.bytes[0] != '&' || rest.length < 2)
        return 1;
    if (rest.bytes[1] == '#')
        return read_number(rest, bytes, count);
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        size_t length = named[i].name.length;
        if (rest.length > length && memcmp(rest.bytes + 1, named[i].name.bytes, length) == 0) {
            bytes[0] = named[i].byte;
            return length + 1;
        }
    }
    return 1; /* an ampersand */
}

const struct rewrite_notation rewrite_html_notation = {.read = read_html, .root_slash = true};
