/* Which places of a JSON document hold links: see rewrite_json.h. */
#include "host-broker/rewrite/rewrite.h"

#define KEY(name)                                                                                  \
    {                                                                                              \
        STEP_KEY, SLICE_LITERAL(name)                                                              \
    }
#define ANY_KEY                                                                                    \
    {                                                                                              \
        STEP_ANY_KEY,                                                                              \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define ANY_ITEM                                                                                   \
    {                                                                                              \
        STEP_ANY_ITEM,                                                                             \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

enum { PATTERN_CARGO_DL = 0 }; /* what makes a config.json cargo's */

struct step {
    enum { STEP_KEY, STEP_ANY_KEY, STEP_ANY_ITEM } kind;
    struct slice key;
};

/* Where download links stand, by the formats' own definitions. */
static const struct pattern {
    enum rewrite_format format;
    unsigned count;
    struct step steps[REWRITE_JSON_STEPS_MAX];
} patterns[] = {
    [PATTERN_CARGO_DL] = {REWRITE_CARGO, 1, {KEY("dl")}},
    {REWRITE_CARGO, 1, {KEY("api")}},
    {REWRITE_NPM, 4, {KEY("versions"), ANY_KEY, KEY("dist"), KEY("tarball")}}, /* a package */
    {REWRITE_NPM, 2, {KEY("dist"), KEY("tarball")}}, /* one version of it */
    {REWRITE_PYPI_JSON, 3, {KEY("files"), ANY_ITEM, KEY("url")}},
    {REWRITE_GIT_LFS, 5, {KEY("objects"), ANY_ITEM, KEY("actions"), ANY_KEY, KEY("href")}},
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

static bool step_agrees(const struct step *step, const struct slice *key)
{
    if (key == NULL)
        return step->kind == STEP_ANY_ITEM;
    return step->kind == STEP_ANY_KEY || (step->kind == STEP_KEY && slice_equal(step->key, *key));
}

void rewrite_json_find_place(struct rewrite_json *json, const struct slice *key)
{
    json->value = 0;
    if (json->depth > REWRITE_JSON_STEPS_MAX)
        return;
    uint32_t alive = json->alive[json->depth];
    for (size_t i = 0; alive != 0; i++, alive >>= 1)
        if ((alive & 1) != 0 && json->depth <= patterns[i].count &&
            step_agrees(&patterns[i].steps[json->depth - 1], key))
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

/* What the key means, from the way it was written. One that is too long, or malformed, is none of a
 * pattern's (and becomes ""), but may stand where a pattern takes any. */
static struct slice read_key(const struct rewrite_json *json, char key[REWRITE_JSON_KEY_MAX])
{
    size_t length = 0;
    struct slice rest = {json->key, json->key_length};
    if (rest.length > REWRITE_JSON_KEY_MAX)
        return (struct slice){0};
    if (rest.length == 0 || memchr(rest.bytes, '\\', rest.length) == NULL)
        return rest;
    while (rest.length > 0) {
        char bytes[REWRITE_CHARACTER_MAX];
        size_t count, taken = rewrite_json_notation.read(rest, bytes, &count);
        if (taken == 0)
            return (struct slice){0};
        memcpy(key + length, bytes, count); /* no longer than it was written */
        length += count;
        rest.bytes += taken;
        rest.length -= taken;
    }
    return (struct slice){key, length};
}

void rewrite_json_end_key(struct rewrite_json *json)
{
    char bytes[REWRITE_JSON_KEY_MAX];
    json->state = REWRITE_JSON_COLON;
    json->value = 0;
    if (!rewrite_json_is_watched(json))
        return;
    struct slice key = read_key(json, bytes);
    rewrite_json_find_place(json, &key);
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
