/* Strict JSON (RFC 8259) over jsmn.
 *
 * jsmn splits a text into tokens but accepts texts that are not JSON. So json_parse first checks
 * the whole text against the grammar (UTF-8 included), then lets jsmn make the tokens. A refused
 * text has a position and a reason. The text stays the caller's and nothing is copied: a value is
 * an index into the caller's token array.
 */
#ifndef COMMON_JSON_JSON_H
#define COMMON_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 64 /* deeper nesting is refused, with a position */

enum json_type {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_TYPE_COUNT
};

extern const char *const json_type_names[JSON_TYPE_COUNT]; /* "an object", "a string", ... */

struct json_token {
    uint32_t start, end; /* bytes of the value in the text; for strings without the quotes */
    uint32_t size;       /* members of an object (pairs), elements of an array, else 0 */
    uint32_t next;       /* index of the token behind this value and all it contains */
    enum json_type type;
};

struct json {
    const char *text;
    size_t length;
    const struct json_token *tokens;
    uint32_t count;
};

struct json_position {
    size_t offset;         /* bytes from the start of the text */
    unsigned line, column; /* from 1; a column counts characters (UTF-8), not bytes */
    const char *reason;    /* words, static */
};

/* Parses `length` bytes (no NUL needed) into at most `capacity` tokens; token 0 is the top value.
 * 0, or -EINVAL (not JSON), -E2BIG (more than `capacity` tokens or deeper than JSON_DEPTH_MAX):
 * then *where is set and *document untouched. A byte order mark is refused: skip it before, see
 * json_skip_bom. Duplicate names are JSON: json_find_duplicate finds them. */
int json_parse(struct json *document, const char *text, size_t length, struct json_token *tokens,
               uint32_t capacity, struct json_position *where);

/* 3 when the text begins with a UTF-8 byte order mark, else 0. */
size_t json_skip_bom(const char *text, size_t length);

/* Line and column of a byte offset in a text. */
void json_locate(const char *text, size_t length, size_t offset, struct json_position *where);

/* Index of the value of the member called `name` (compared after unescaping), or 0 when the value
 * at `object` is no object or has no such member (0 is the top value and never a member). */
uint32_t json_member(const struct json *document, uint32_t object, const char *name);

/* Iteration over an object or array: start with json_first, go on with json_next, end at 0. In an
 * object the index is the name's; its value is at index + 1. */
uint32_t json_first(const struct json *document, uint32_t container);
uint32_t json_next(const struct json *document, uint32_t container, uint32_t index);

/* Index of the first name of an object, or string of an array, that is equal to an earlier one; 0
 * when there is none. */
uint32_t json_find_duplicate(const struct json *document, uint32_t container);

/* Unescapes a string (or a name) into `out` with a final NUL. Returns its length, or -EINVAL (no
 * string), -ENAMETOOLONG (does not fit), -EILSEQ (holds U+0000, which C strings cannot, or a lone
 * surrogate, which UTF-8 cannot). */
int json_string(const struct json *document, uint32_t index, char *out, size_t size);

/* True when the value is a string equal to `expected` after unescaping. */
bool json_string_equals(const struct json *document, uint32_t index, const char *expected);

/* A number without fraction or exponent within int64_t: 0, else -EINVAL (no number), -ERANGE. */
int json_int64(const struct json *document, uint32_t index, int64_t *out);

#endif
