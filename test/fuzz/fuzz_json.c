/* The JSON reader: whatever it accepts must be walkable, and what the writer makes of its strings
 * must be accepted again and mean the same.
 */
#include <errno.h>
#include <string.h>

#include "common/json/json.h"
#include "common/json/json_writer.h"
#include "test/fuzz/fuzz.h"

#define TOKENS 256

static void check_string(const struct json *document, uint32_t index)
{
    char plain[4096], written[6 * sizeof(plain) + 8], again[sizeof(plain)];
    int length = json_string(document, index, plain, sizeof(plain));
    if (length < 0)
        return;
    FUZZ_CHECK(strlen(plain) == (size_t)length);
    FUZZ_CHECK(json_string_equals(document, index, plain));
    struct json_writer writer;
    json_writer_start(&writer, written, sizeof(written));
    json_write_string(&writer, plain);
    int written_length = json_writer_finish(&writer, false);
    FUZZ_CHECK(written_length > 0);
    struct json copy;
    struct json_token token;
    struct json_position where;
    FUZZ_CHECK(json_parse(&copy, written, (size_t)written_length, &token, 1, &where) == 0);
    FUZZ_CHECK(json_string(&copy, 0, again, sizeof(again)) == length);
    FUZZ_CHECK(memcmp(plain, again, (size_t)length + 1) == 0);
}

static void check_token(const struct json *document, uint32_t index)
{
    const struct json_token *token = &document->tokens[index];
    FUZZ_CHECK(token->start <= token->end && token->end <= document->length);
    FUZZ_CHECK(token->next > index && token->next <= document->count);
    FUZZ_CHECK(token->type < JSON_TYPE_COUNT);
    int64_t number;
    (void)json_int64(document, index, &number);
    check_string(document, index);
    uint32_t children = 0;
    for (uint32_t i = json_first(document, index); i != 0; i = json_next(document, index, i))
        children++;
    FUZZ_CHECK(children == token->size);
    uint32_t duplicate = json_find_duplicate(document, index);
    FUZZ_CHECK(duplicate == 0 || (duplicate > index && duplicate < token->next));
    (void)json_member(document, index, "a");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json document;
    struct json_token tokens[TOKENS];
    struct json_position where;
    int result = json_parse(&document, (const char *)data, size, tokens, TOKENS, &where);
    if (result != 0) {
        FUZZ_CHECK(result == -EINVAL || result == -E2BIG);
        FUZZ_CHECK(where.offset <= size && where.line > 0 && where.column > 0 && where.reason);
        return 0;
    }
    FUZZ_CHECK(document.count > 0 && tokens[0].next == document.count);
    for (uint32_t i = 0; i < document.count; i++)
        check_token(&document, i);
    return 0;
}
