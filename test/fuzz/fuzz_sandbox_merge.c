/* Two JSON objects with a NUL between them, the second laid over the first: the result is JSON, and
 * laying the same overlay over it once more changes nothing. */
#include <string.h>

#include "test/fuzz/fuzz.h"
#include "test/harness/json_replay.h"

#define TOKENS 2048
#define TEXT 65536

static struct json_token base_tokens[TOKENS], overlay_tokens[TOKENS], merged_tokens[2 * TOKENS];
static bool used[TOKENS];
static char merged_text[TEXT], again_text[TEXT];

static int parse_object(struct json *json, const char *text, size_t length,
                        struct json_token *tokens, uint32_t count)
{
    struct json_position where;
    if (json_parse(json, text, length, tokens, count, &where) ||
        json->tokens[0].type != JSON_OBJECT)
        return -1;
    for (uint32_t i = 0; i < json->count; i++)
        if (json->tokens[i].type == JSON_OBJECT && json_find_duplicate(json, i))
            return -1;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *middle = memchr(text, '\0', size);
    struct json base, overlay, merged;
    if (!middle || parse_object(&base, text, (size_t)(middle - text), base_tokens, TOKENS) ||
        parse_object(&overlay, middle + 1, size - (size_t)(middle + 1 - text), overlay_tokens,
                     TOKENS))
        return 0;
    int length = json_replay(&base, &overlay, used, merged_text, TEXT);
    if (length < 0)
        return 0;
    FUZZ_CHECK(parse_object(&merged, merged_text, (size_t)length, merged_tokens, 2 * TOKENS) == 0);
    FUZZ_CHECK(json_replay(&merged, &overlay, used, again_text, TEXT) == length);
    FUZZ_CHECK(memcmp(merged_text, again_text, (size_t)length) == 0);
    return 0;
}
