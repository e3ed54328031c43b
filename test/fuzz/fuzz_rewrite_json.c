/* Links in JSON documents. For valid JSON the output is known: an independent walk over the parsed
 * document finds the links, and all other bytes are unchanged.
 */
#include "common/json/json.h"
#include "test/fuzz/fuzz_rewrite.h"

#define TOKENS_MAX 8192
#define LINKS_MAX 4096

static const struct {
    enum rewrite_format format;
    const char *steps[6];
} places[] = {
    {REWRITE_NPM, {"versions", "*", "dist", "tarball"}},
    {REWRITE_NPM, {"dist", "tarball"}},
    {REWRITE_PYPI_JSON, {"files", "[]", "url"}},
    {REWRITE_GIT_LFS, {"objects", "[]", "actions", "*", "href"}},
    {REWRITE_CARGO, {"dl"}},
    {REWRITE_CARGO, {"api"}},
};

struct found {
    bool is_link[TOKENS_MAX];
    bool dl;
};

static void walk(const struct json *json, uint32_t at, const char *const *steps,
                 struct found *found)
{
    if (!steps[0]) {
        if (json->tokens[at].type == JSON_STRING)
            found->is_link[at] = true;
        return;
    }
    bool items = strcmp(steps[0], "[]") == 0;
    if (json->tokens[at].type != (items ? JSON_ARRAY : JSON_OBJECT))
        return;
    for (uint32_t i = json_first(json, at); i != 0; i = json_next(json, at, i)) {
        char name[16];
        if (items)
            walk(json, i, steps + 1, found);
        else if (strcmp(steps[0], "*") == 0 ||
                 (json_string(json, i, name, sizeof(name)) >= 0 && strcmp(steps[0], name) == 0))
            walk(json, i + 1, steps + 1, found);
    }
}

static void find_links(const struct json *json, enum rewrite_format format, struct found *found)
{
    memset(found, 0, sizeof(*found));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (places[i].format == format)
            walk(json, 0, places[i].steps, found);
    if (format != REWRITE_CARGO)
        return;
    bool dl = false;
    for (uint32_t i = json_first(json, 0); i != 0; i = json_next(json, 0, i)) {
        char name[16];
        dl = dl || (found->is_link[i + 1] && json_string(json, i, name, sizeof(name)) >= 0 &&
                    strcmp(name, "dl") == 0);
    }
    if (!dl || json->length > REWRITE_WHOLE_MAX)
        memset(found, 0, sizeof(*found));
}

static void check_places(const struct fuzz_run *run, const struct json *json,
                         const struct found *found)
{
    static char link[REWRITE_LINK_MAX + REWRITE_LINK_GROWTH];
    struct location_context context = fuzz_context();
    size_t out = 0, at = 0, links = 0;
    for (uint32_t i = 0; i <= json->count; i++) {
        bool end = i == json->count;
        if (!end && !found->is_link[i])
            continue;
        size_t start = end ? json->length : json->tokens[i].start;
        FUZZ_CHECK(run->length - out >= start - at);
        FUZZ_CHECK(memcmp(run->output + out, json->text + at, start - at) == 0);
        out += start - at;
        at = start;
        if (end)
            break;
        struct slice raw = {json->text + start, json->tokens[i].end - start};
        size_t length =
            rewrite_link(link, sizeof(link), raw, &rewrite_json_notation, &context, NULL);
        struct slice expected = length > 0 ? (struct slice){link, length} : raw;
        FUZZ_CHECK(run->length - out >= expected.length);
        FUZZ_CHECK(memcmp(run->output + out, expected.bytes, expected.length) == 0);
        links += length > 0;
        out += expected.length;
        at += raw.length;
    }
    FUZZ_CHECK(out == run->length && links == run->rewrite.stream.links);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum rewrite_format formats[] = {REWRITE_NPM, REWRITE_PYPI_JSON, REWRITE_CARGO,
                                                  REWRITE_GIT_LFS};
    static struct json_token tokens[TOKENS_MAX];
    static struct found found;
    struct json json;
    struct json_position where;
    if (size < 2 || size > FUZZ_DOCUMENT_MAX)
        return 0;
    enum rewrite_format format = formats[data[0] % 4];
    struct slice document = {(const char *)data + 2, size - 2};
    const struct fuzz_run *run = fuzz_document(format, data[1], document);
    if (json_parse(&json, document.bytes, document.length, tokens, TOKENS_MAX, &where) != 0)
        return 0;
    find_links(&json, format, &found);
    check_places(run, &json, &found);
    return 0;
}
