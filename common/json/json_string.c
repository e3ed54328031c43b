/* Strings of a parsed text. They are known to be well-formed, so escapes are read without looking for
 * errors; comparing happens character by character and needs no buffer.
 */
#include <errno.h>
#include <string.h>

#include "common/json/json.h"
#include "common/json/json_internal.h"
#include "common/text/name_filter.h"
#include "common/text/utf8.h"

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

uint32_t json_read_character(const char *text, size_t end, size_t *at)
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
            out[length++] = (char)plain; /* by far the most */
            at++;
            continue;
        }
        uint32_t code = json_read_character(document->text, token->end, &at);
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
        uint32_t code = json_read_character(document->text, token->end, &at);
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
        if (json_read_character(document->text, a->end, &at_a) !=
            json_read_character(document->text, b->end, &at_b))
            return false;
    return at_a == a->end && at_b == b->end;
}

static uint32_t hash_string(const struct json *document, const struct json_token *token)
{
    uint32_t hash = NAME_FILTER_SEED;
    for (size_t at = token->start; at < token->end;)
        hash = name_filter_hash(hash, json_read_character(document->text, token->end, &at));
    return hash;
}

uint32_t json_find_duplicate(const struct json *document, uint32_t object)
{
    const struct json_token *tokens = document->tokens;
    struct name_filter filter = {{0}};
    if (tokens[object].type != JSON_OBJECT)
        return 0;
    for (uint32_t i = json_first(document, object); i != 0; i = json_next(document, object, i)) {
        if (!name_filter_seen(&filter, hash_string(document, &tokens[i])))
            continue;
        for (uint32_t j = json_first(document, object); j < i; j = json_next(document, object, j))
            if (same_string(document, &tokens[i], &tokens[j]))
                return i;
    }
    return 0;
}
