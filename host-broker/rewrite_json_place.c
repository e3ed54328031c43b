/* Which places of a JSON document hold links: see rewrite_json.h. */
#include "host-broker/rewrite.h"

#define ANY_KEY "*"
#define ANY_ITEM "[]"

enum { PATTERN_CARGO_DL = 0 }; /* what makes a config.json cargo's */

/* Where download links stand, by the formats' own definitions. */
static const struct pattern {
    enum rewrite_format format;
    unsigned count;
    const char *steps[REWRITE_JSON_STEPS_MAX];
} patterns[] = {
    [PATTERN_CARGO_DL] = {REWRITE_CARGO, 1, {"dl"}},
    {REWRITE_CARGO, 1, {"api"}},
    {REWRITE_NPM, 4, {"versions", ANY_KEY, "dist", "tarball"}}, /* a package */
    {REWRITE_NPM, 2, {"dist", "tarball"}},                      /* one version of it */
    {REWRITE_PYPI_JSON, 3, {"files", ANY_ITEM, "url"}},
    {REWRITE_GIT_LFS, 5, {"objects", ANY_ITEM, "actions", ANY_KEY, "href"}},
};
#define PATTERN_COUNT (sizeof(patterns) / sizeof(patterns[0]))

void rewrite_json_start(struct rewrite *rewrite)
{
    struct rewrite_json *json = &rewrite->json;
    *json = (struct rewrite_json){.state = REWRITE_JSON_VALUE};
    for (size_t i = 0; i < PATTERN_COUNT; i++)
        if (patterns[i].format == rewrite->format)
            json->value |= 1u << i;
}

static bool step_agrees(const char *step, const char *key)
{
    if (key == NULL)
        return strcmp(step, ANY_ITEM) == 0;
    if (step[0] == key[0] && strcmp(step, key) == 0)
        return strcmp(step, ANY_ITEM) != 0;
    return strcmp(step, ANY_KEY) == 0;
}

/* The patterns that agree with the next value's place: under `key`, or NULL for an item of an array. */
void rewrite_json_find_place(struct rewrite_json *json, const char *key)
{
    json->value = 0;
    if (json->depth > REWRITE_JSON_STEPS_MAX)
        return;
    uint32_t alive = json->alive[json->depth];
    for (size_t i = 0; alive != 0; i++, alive >>= 1)
        if ((alive & 1) != 0 && json->depth <= patterns[i].count &&
            step_agrees(patterns[i].steps[json->depth - 1], key))
            json->value |= 1u << i;
}

bool rewrite_json_place_is_link(const struct rewrite_json *json)
{
    for (size_t i = 0; i < PATTERN_COUNT; i++)
        if ((json->value >> i & 1) != 0 && patterns[i].count == json->depth)
            return true;
    return false;
}

bool rewrite_json_is_watched(const struct rewrite_json *json)
{
    return json->depth <= REWRITE_JSON_STEPS_MAX && json->alive[json->depth] != 0;
}

/* What the key means, from the way it was written, with a NUL. One that is too long, or holds a NUL of its
 * own, is none of a pattern's (and becomes ""), but may stand where a pattern takes any. */
static void read_key(const struct rewrite_json *json, char key[REWRITE_JSON_KEY_MAX + 1])
{
    size_t length = 0;
    struct slice rest = {json->key, json->key_length};
    if (rest.length > REWRITE_JSON_KEY_MAX)
        rest.length = 0;
    if (rest.length > 0 && memchr(rest.bytes, '\\', rest.length) == NULL) {
        memcpy(key, rest.bytes, rest.length);
        length = rest.length;
        rest.length = 0;
    }
    while (rest.length > 0) {
        char bytes[REWRITE_CHARACTER_MAX];
        size_t count, taken = rewrite_json_notation.read(rest, bytes, &count);
        if (taken == 0 || bytes[0] == '\0') {
            length = 0;
            break;
        }
        memcpy(key + length, bytes, count); /* no longer than it was written */
        length += count;
        rest.bytes += taken;
        rest.length -= taken;
    }
    key[length] = '\0';
}

void rewrite_json_end_key(struct rewrite_json *json)
{
    char key[REWRITE_JSON_KEY_MAX + 1];
    json->state = REWRITE_JSON_COLON;
    json->value = 0;
    if (!rewrite_json_is_watched(json))
        return;
    read_key(json, key);
    rewrite_json_find_place(json, key);
}

void rewrite_json_keep_key(struct rewrite_json *json, const char *bytes, size_t length)
{
    if (length > REWRITE_JSON_KEY_MAX || json->key_length > REWRITE_JSON_KEY_MAX - length) {
        json->key_length = REWRITE_JSON_KEY_MAX + 1;
        return;
    }
    memcpy(json->key + json->key_length, bytes, length);
    json->key_length += length;
}

bool rewrite_json_place_is_dl(const struct rewrite_json *json)
{
    return (json->value >> PATTERN_CARGO_DL & 1) != 0;
}
