/* Tokens, the navigation among them, and their values.
 *
 * The grammar is checked before jsmn sees the text, so jsmn (in its lenient mode, which takes every
 * valid text) only splits what is known to be right. Its tokens are made in the caller's array and
 * turned into ours in place, backwards: a container's `next` is found by stepping over its
 * children, which stand behind it and are done already.
 */
#include "common/json/json.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdalign.h>
#include <string.h>

#include "common/json/json_internal.h"
#include "common/text/utf8.h"

/* json_find_duplicate() compares a string with all before it only when the bit of its hash is set,
 * in a bitmap of 2 KiB. The 1000 names that a boot configuration may have take 0.6 ms that way
 * instead of 10 ms or more, and an emulated guest is ten times slower. */
#define HASH_BITS 14
#define HASH_WORDS ((1u << HASH_BITS) / 32)

#define JSMN_STATIC
#define JSMN_PARENT_LINKS /* without them jsmn searches backwards: quadratic in a large array */
#include <jsmn.h>

static_assert(sizeof(jsmntok_t) == sizeof(struct json_token), "converted in place");
static_assert(alignof(jsmntok_t) == alignof(struct json_token), "converted in place");

const char *const json_type_names[] = {"an object", "an array", "a string", "a number",
                                       "true",      "false",    "null"};
static_assert(sizeof(json_type_names) / sizeof(json_type_names[0]) == JSON_TYPE_COUNT,
              "a name for every type");

static enum json_type type_of(const jsmntok_t *raw, const char *text)
{
    switch (raw->type) {
    case JSMN_OBJECT:
        return JSON_OBJECT;
    case JSMN_ARRAY:
        return JSON_ARRAY;
    case JSMN_STRING:
        return JSON_STRING;
    case JSMN_PRIMITIVE:
    case JSMN_UNDEFINED:
        break;
    }
    switch (text[raw->start]) {
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    }
    return JSON_NUMBER;
}

/* memcpy in and out: the same memory holds jsmn's kind of token before and ours after. */
static void convert_tokens(struct json_token *tokens, uint32_t count, const char *text)
{
    for (uint32_t i = count; i-- > 0;) {
        jsmntok_t raw;
        memcpy(&raw, &tokens[i], sizeof(raw));
        struct json_token token = {
            .start = (uint32_t)raw.start, .end = (uint32_t)raw.end, .next = i + 1};
        token.type = type_of(&raw, text);
        uint32_t children = 0;
        if (token.type == JSON_OBJECT || token.type == JSON_ARRAY) {
            token.size = (uint32_t)raw.size; /* jsmn counts an object's names */
            children = token.type == JSON_OBJECT ? 2 * token.size : token.size;
        }
        while (children-- > 0)
            token.next = tokens[token.next].next;
        memcpy(&tokens[i], &token, sizeof(token));
    }
}

static int refuse(const char *text, size_t length, size_t offset, const char *reason, int error,
                  struct json_position *where)
{
    json_locate(text, length, offset, where);
    where->reason = reason;
    return error;
}

int json_parse(struct json *document, const char *text, size_t length, struct json_token *tokens,
               uint32_t capacity, struct json_position *where)
{
    size_t offset;
    const char *reason;
    if (length > INT_MAX) /* jsmn counts in int */
        return refuse(text, length, 0, "the text is too long", -E2BIG, where);
    int result = json_grammar_check(text, length, &offset, &reason);
    if (result < 0)
        return refuse(text, length, offset, reason, result, where);

    jsmn_parser parser;
    jsmn_init(&parser);
    int count = jsmn_parse(&parser, text, length, (jsmntok_t *)(void *)tokens, capacity);
    if (count == JSMN_ERROR_NOMEM)
        return refuse(text, length, parser.pos, "too many values", -E2BIG, where);
    if (count < 1) /* cannot happen: json_grammar.c accepted the text */
        return refuse(text, length, parser.pos, "not JSON", -EINVAL, where);
    convert_tokens(tokens, (uint32_t)count, text);
    *document = (struct json){text, length, tokens, (uint32_t)count};
    return 0;
}

size_t json_skip_bom(const char *text, size_t length)
{
    return length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

void json_locate(const char *text, size_t length, size_t offset, struct json_position *where)
{
    *where = (struct json_position){.offset = offset, .line = 1, .column = 1};
    if (offset > length)
        offset = length;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            where->line++;
            where->column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) { /* no continuation byte */
            where->column++;
        }
    }
}

uint32_t json_first(const struct json *document, uint32_t container)
{
    const struct json_token *token = &document->tokens[container];
    return token->size > 0 ? container + 1 : 0; /* size is 0 for all but containers */
}

uint32_t json_next(const struct json *document, uint32_t container, uint32_t index)
{
    const struct json_token *tokens = document->tokens;
    uint32_t value = tokens[container].type == JSON_OBJECT ? index + 1 : index;
    return tokens[value].next < tokens[container].next ? tokens[value].next : 0;
}

uint32_t json_member(const struct json *document, uint32_t object, const char *name)
{
    if (document->tokens[object].type != JSON_OBJECT)
        return 0;
    for (uint32_t i = json_first(document, object); i != 0; i = json_next(document, object, i))
        if (json_string_equals(document, i, name))
            return i + 1;
    return 0;
}

/* ---- strings: the grammar is checked, so escapes are read without looking for errors ---- */

static uint32_t read_hex4(const char *text)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char digit = text[i];
        value = value << 4 | (uint32_t)(digit <= '9'   ? digit - '0'
                                        : digit <= 'F' ? digit - 'A' + 10
                                                       : digit - 'a' + 10);
    }
    return value;
}

static bool is_surrogate(uint32_t code)
{
    return code >= 0xd800 && code <= 0xdfff;
}

/* \uXXXX at `at`, joined with a following one when both make a pair (RFC 8259 section 7). */
static uint32_t read_unicode_escape(const char *text, size_t end, size_t *at)
{
    uint32_t code = read_hex4(text + *at + 2);
    *at += 6;
    if (code < 0xd800 || code > 0xdbff || end - *at < 6 || text[*at] != '\\' ||
        text[*at + 1] != 'u')
        return code;
    uint32_t low = read_hex4(text + *at + 2);
    if (low < 0xdc00 || low > 0xdfff)
        return code;
    *at += 6;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static uint32_t read_character(const char *text, size_t end, size_t *at)
{
    if (text[*at] != '\\') {
        uint32_t code = UTF8_REPLACEMENT;
        size_t taken = utf8_decode(text + *at, end - *at, &code);
        *at += taken > 0 ? taken : 1;
        return code;
    }
    char letter = text[*at + 1];
    if (letter == 'u')
        return read_unicode_escape(text, end, at);
    *at += 2;
    switch (letter) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    }
    return (unsigned char)letter; /* quote, backslash, slash */
}

int json_string(const struct json *document, uint32_t index, char *out, size_t size)
{
    const struct json_token *token = &document->tokens[index];
    if (token->type != JSON_STRING)
        return -EINVAL;
    size_t at = token->start, length = 0;
    while (at < token->end) {
        unsigned char plain = (unsigned char)document->text[at];
        if (plain < 0x80 && plain != '\\' && length + 1 < size) {
            out[length++] = (char)plain; /* most characters */
            at++;
            continue;
        }
        uint32_t code = read_character(document->text, token->end, &at);
        if (code == 0 || is_surrogate(code))
            return -EILSEQ;
        char bytes[UTF8_LENGTH_MAX];
        size_t count = utf8_encode(bytes, code);
        if (length + count >= size)
            return -ENAMETOOLONG;
        memcpy(out + length, bytes, count);
        length += count;
    }
    if (size == 0)
        return -ENAMETOOLONG;
    out[length] = '\0';
    return (int)length;
}

bool json_string_equals(const struct json *document, uint32_t index, const char *expected)
{
    const struct json_token *token = &document->tokens[index];
    if (token->type != JSON_STRING)
        return false;
    size_t at = token->start;
    while (at < token->end) {
        uint32_t code = read_character(document->text, token->end, &at);
        if (code == 0 || is_surrogate(code))
            return false;
        char bytes[UTF8_LENGTH_MAX];
        size_t count = utf8_encode(bytes, code);
        if (strncmp(expected, bytes, count) != 0) /* stops at the end of `expected` */
            return false;
        expected += count;
    }
    return *expected == '\0';
}

static bool same_string(const struct json *document, const struct json_token *a,
                        const struct json_token *b)
{
    size_t at_a = a->start, at_b = b->start;
    while (at_a < a->end && at_b < b->end)
        if (read_character(document->text, a->end, &at_a) !=
            read_character(document->text, b->end, &at_b))
            return false;
    return at_a == a->end && at_b == b->end;
}

/* FNV-1a, 32 bits. */
static uint32_t hash_string(const struct json *document, const struct json_token *token)
{
    uint32_t hash = 2166136261u;
    for (size_t at = token->start; at < token->end;)
        hash = (hash ^ read_character(document->text, token->end, &at)) * 16777619u;
    return hash;
}

/* Sets the hash's bit and tells whether it was set. The last characters change only the hash's
 * lower bits; Knuth's multiplication spreads them over the upper ones. */
static bool hash_seen(uint32_t seen[HASH_WORDS], uint32_t hash)
{
    uint32_t bit = hash * 2654435761u >> (32 - HASH_BITS);
    bool before = seen[bit / 32] >> (bit % 32) & 1;
    seen[bit / 32] |= 1u << (bit % 32);
    return before;
}

uint32_t json_find_duplicate(const struct json *document, uint32_t container)
{
    const struct json_token *tokens = document->tokens;
    uint32_t seen[HASH_WORDS] = {0};
    for (uint32_t i = json_first(document, container); i != 0;
         i = json_next(document, container, i)) {
        if (tokens[i].type != JSON_STRING || !hash_seen(seen, hash_string(document, &tokens[i])))
            continue;
        for (uint32_t j = json_first(document, container); j < i;
             j = json_next(document, container, j))
            if (tokens[j].type == JSON_STRING && same_string(document, &tokens[i], &tokens[j]))
                return i;
    }
    return 0;
}

int json_int64(const struct json *document, uint32_t index, int64_t *out)
{
    const struct json_token *token = &document->tokens[index];
    if (token->type != JSON_NUMBER)
        return -EINVAL;
    const char *digit = document->text + token->start, *end = document->text + token->end;
    bool negative = *digit == '-';
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX, value = 0;
    for (digit += negative; digit < end; digit++) {
        if (*digit < '0' || *digit > '9')
            return -EINVAL; /* a fraction or an exponent */
        unsigned number = (unsigned)(*digit - '0');
        if (value > (limit - number) / 10)
            return -ERANGE;
        value = value * 10 + number;
    }
    *out = (int64_t)(negative ? 0 - value : value);
    return 0;
}
