/* One link of a document: how it is written, its clean form, and the address that replaces its
 * beginning. */
#include "host-broker/rewrite/rewrite_link_internal.h"

#include <stdint.h>

#include "common/os/cleanup.h"
#include "common/text/utf8.h"
#include "host-broker/http/target.h"
#include "host-broker/http/url_reference.h"

/* --- notations --- */

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
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* pairs: letter, character */
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

/* Named references of characters that URLs consist of. */
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

/* "&#47;", "&#x2F;", with or without the semicolon. Without a digit it is an ampersand. */
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
    for (size_t i = 0; i < ARRAY_LENGTH(named); i++) {
        size_t length = named[i].name.length;
        if (rest.length > length && memcmp(rest.bytes + 1, named[i].name.bytes, length) == 0) {
            bytes[0] = named[i].byte;
            return length + 1;
        }
    }
    return 1; /* an ampersand */
}

const struct rewrite_notation rewrite_html_notation = {.read = read_html, .root_slash = true};

/* --- the clean form --- */

#define CLEAN_MAX 16384 /* bytes with the escapes of cleaning; a longer link is left unchanged */

/* The link in its clean form, and which byte of the document each of its bytes comes from. */
struct clean_link {
    struct slice path_text; /* up to the query: in `bytes`, or in the document itself */
    bool same;              /* in the document: it was clean as written */
    bool valid;             /* target_check_path accepts its path (false: not known) */
    char bytes[CLEAN_MAX];
    uint16_t from[CLEAN_MAX + 1];
    struct url_text text;
    size_t first; /* byte of the document where the link begins, after white space */
};

/* The byte is the same in JSON, in HTML and in a clean link, and does not end the path. */
#define BYTE_PLAIN 1u
/* Besides, it is valid everywhere in a path, except '.' after '/'. */
#define BYTE_VALID 2u
#define BYTE_BOTH (BYTE_PLAIN | BYTE_VALID)

static const uint8_t byte_classes[256] = {
    ['!'] = BYTE_BOTH,           ['"'] = BYTE_PLAIN,         ['$' ... '%'] = BYTE_PLAIN,
    ['\'' ... '*'] = BYTE_PLAIN, ['+'] = BYTE_BOTH,          [','] = BYTE_PLAIN,
    ['-' ... ':'] = BYTE_BOTH,   [';' ... '>'] = BYTE_PLAIN, ['@' ... 'Z'] = BYTE_BOTH,
    ['['] = BYTE_PLAIN,          [']' ... '^'] = BYTE_PLAIN, ['_'] = BYTE_BOTH,
    ['`'] = BYTE_PLAIN,          ['a' ... 'z'] = BYTE_BOTH,  ['{' ... '}'] = BYTE_PLAIN,
    ['~'] = BYTE_BOTH,
};

static bool is_white(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == '\f';
}

static bool ends_path(char byte)
{
    return byte == '?' || byte == '#';
}

static size_t skip_class(struct slice text, size_t at, unsigned class)
{
    while (at < text.length && (byte_classes[(unsigned char)text.bytes[at]] & class) != 0)
        at++;
    return at;
}

static bool has_leading_dot(struct slice path)
{
    const char *end = path.bytes + path.length, *dot;
    for (const char *at = path.bytes; at < end; at = dot + 1) {
        dot = memchr(at, '.', (size_t)(end - at));
        if (!dot)
            return false;
        if (dot == path.bytes || dot[-1] == '/')
            return true;
    }
    return false;
}

/* How many plain bytes the text begins with. *valid: each path within them is one that
 * target_check_path accepts. Cleared by a byte that is not valid everywhere, or by '.' after
 * '/'. */
static size_t plain_length(struct slice text, bool *valid)
{
    size_t length = skip_class(text, 0, BYTE_VALID);
    *valid = !has_leading_dot((struct slice){text.bytes, length});
    if (length < text.length &&
        (byte_classes[(unsigned char)text.bytes[length]] & BYTE_PLAIN) != 0) {
        *valid = false;
        length = skip_class(text, length, BYTE_PLAIN);
    }
    return length;
}

static void add_byte(struct clean_link *clean, char byte, size_t at)
{
    bool before_query = true;
    size_t before = clean->text.length;
    url_text_append_clean(&clean->text, (unsigned char)byte, &before_query);
    for (size_t i = before; i < clean->text.length; i++)
        clean->from[i] = (uint16_t)at;
}

static void add_character(struct clean_link *clean, const char *bytes, size_t count, size_t at,
                          size_t *solid)
{
    for (size_t i = 0; i < count; i++) {
        bool white = is_white(bytes[i]);
        if (white && (bytes[i] != ' ' || *solid == 0))
            continue;
        add_byte(clean, bytes[i], at);
        if (white)
            continue;
        clean->first = *solid > 0 ? clean->first : at;
        *solid = clean->text.length;
    }
}

/* The same as add_character for each of these plain bytes. */
static void add_plain(struct clean_link *clean, struct slice plain, size_t at, size_t *solid)
{
    size_t before = clean->text.length;
    url_text_append(&clean->text, plain);
    if (clean->text.overflow)
        return;
    for (size_t i = 0; i < plain.length; i++)
        clean->from[before + i] = (uint16_t)(at + i);
    clean->first = *solid > 0 ? clean->first : at;
    *solid = clean->text.length;
}

/* Adds one character, or all plain bytes that come next. Returns how many bytes of the document it
 * took; 0 at the query, and at a malformed character (*sound becomes false). */
static size_t add_some(struct clean_link *clean, struct slice rest,
                       const struct rewrite_notation *notation, size_t at, size_t *solid,
                       bool *sound)
{
    char bytes[REWRITE_CHARACTER_MAX] = {rest.bytes[0]};
    size_t count = 1, taken = skip_class(rest, 0, BYTE_PLAIN);
    if (taken > 0) {
        add_plain(clean, (struct slice){rest.bytes, taken}, at, solid);
        return taken;
    }
    taken = notation->read(rest, bytes, &count);
    *sound = taken > 0;
    if (taken == 0 || ends_path(bytes[0]))
        return 0;
    add_character(clean, bytes, count, at, solid);
    return taken;
}

/* Cleans the link up to its query or fragment, which do not matter for the rule. Tabs and line ends
 * are dropped, and so is white space at both ends (WHATWG URL). False when the link is malformed,
 * too long, or empty. */
static bool clean_link(struct clean_link *clean, struct slice raw,
                       const struct rewrite_notation *notation)
{
    size_t at = plain_length(raw, &clean->valid), taken;
    size_t solid = 0; /* length without white space at the end */
    bool sound = true;
    clean->first = 0;
    clean->path_text = (struct slice){raw.bytes, at};
    clean->same = at > 0 && (at == raw.length || ends_path(raw.bytes[at]));
    if (clean->same)
        return true;
    clean->text = (struct url_text){.bytes = clean->bytes, .size = CLEAN_MAX};
    for (at = 0; at < raw.length; at += taken) {
        struct slice rest = {raw.bytes + at, raw.length - at};
        taken = add_some(clean, rest, notation, at, &solid, &sound);
        if (taken == 0)
            break;
    }
    if (!sound || clean->text.overflow || solid == 0)
        return false;
    clean->from[clean->text.length] = (uint16_t)at;
    clean->path_text = (struct slice){clean->bytes, solid};
    clean->valid = plain_length(clean->path_text, &clean->valid) == solid && clean->valid;
    return true;
}

/* The byte of the document that a byte of the clean text comes from. */
static size_t document_offset(const struct clean_link *clean, const char *byte)
{
    size_t offset = (size_t)(byte - clean->path_text.bytes);
    return clean->same ? offset : clean->from[offset];
}

/* --- the rewritten link --- */

/* False for relative links and other schemes, which stay unchanged. */
static bool is_absolute(const struct url_reference *reference)
{
    bool rooted = reference->path.length > 0 && reference->path.bytes[0] == '/';
    return url_reference_is_http(reference) && (reference->has_authority || rooted);
}

/* Appends the new beginning. Returns where the part of the clean link begins that is kept, or NULL
 * when nothing is kept. */
static const char *append_new(struct url_text *out, const struct url_reference *reference,
                              const struct location_context *context,
                              const struct upstream_url *origin, bool origin_valid, bool path_valid)
{
    const struct rule *rule = NULL;
    struct slice rest = reference->path;
    if (origin_valid && path_valid)
        rule = rules_find_address(context->rules, context->rule, origin, reference->path, &rest);
    url_text_append(out, slice_of(context->guest_url));
    if (rule) {
        url_text_append(out, SLICE_LITERAL("/"));
        url_text_append(out, slice_of(rule->name));
    } else {
        url_text_append_undeclared(out, origin, origin_valid, reference->authority);
    }
    return path_valid ? rest.bytes : NULL;
}

size_t rewrite_link(char *out, size_t size, struct slice raw,
                    const struct rewrite_notation *notation, const struct location_context *context,
                    struct upstream_url *origin)
{
    static struct clean_link clean; /* large; there is one thread */
    struct upstream_url found;
    if (raw.length > REWRITE_LINK_MAX || !clean_link(&clean, raw, notation))
        return 0;
    struct url_reference reference = url_reference_cut(clean.path_text);
    if (!is_absolute(&reference))
        return 0;
    bool path_valid = clean.valid || target_check_path(reference.path) == TARGET_FAULT_NONE;
    bool origin_valid = url_reference_origin(&found, &reference, context->origin);
    if (origin && origin_valid && reference.has_authority)
        *origin = found;

    /* The result must not depend on how much room there is. */
    if (size > raw.length + REWRITE_LINK_GROWTH)
        size = raw.length + REWRITE_LINK_GROWTH;
    struct url_text text = {.bytes = out, .size = size};
    url_text_append(&text, (struct slice){raw.bytes, clean.first});
    const char *kept = append_new(&text, &reference, context, &found, origin_valid, path_valid);
    if (notation->root_slash && reference.path.length == 0)
        url_text_append(&text, SLICE_LITERAL("/"));
    size_t tail = kept ? document_offset(&clean, kept) : raw.length;
    url_text_append(&text, (struct slice){raw.bytes + tail, raw.length - tail});
    return text.overflow ? 0 : text.length;
}
