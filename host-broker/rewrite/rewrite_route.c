/* The table of answers that are rewritten, and the shapes of paths that it names. */
#include "host-broker/rewrite/rewrite_route.h"

#include "common/os/cleanup.h"
#include "host-broker/http/field.h"

#define TYPES_MAX 5
#define NO_TYPE "" /* an answer without Content-Type */

#define NPM_ABBREVIATED "application/vnd.npm.install-v1+json"
#define PYPI_JSON "application/vnd.pypi.simple.v1+json"
#define PYPI_HTML "application/vnd.pypi.simple.v1+html"
#define GIT_LFS "application/vnd.git-lfs+json"

/* --- shapes of paths --- */

static bool next_segment(struct slice *path, struct slice *segment)
{
    while (path->length > 0 && path->bytes[0] == '/') {
        path->bytes++;
        path->length--;
    }
    const char *slash = path->length > 0 ? memchr(path->bytes, '/', path->length) : NULL;
    *segment = (struct slice){path->bytes, slash ? (size_t)(slash - path->bytes) : path->length};
    path->bytes += segment->length;
    path->length -= segment->length;
    return segment->length > 0;
}

static bool is_last(struct slice path)
{
    struct slice segment;
    return !next_segment(&path, &segment);
}

static bool is_version(struct slice segment)
{
    static const struct slice latest = SLICE_LITERAL("latest");
    bool digit = segment.bytes[0] >= '0' && segment.bytes[0] <= '9';
    return digit || (segment.length >= latest.length &&
                     memcmp(segment.bytes, latest.bytes, latest.length) == 0);
}

static bool ends_with(struct slice path, struct slice end)
{
    return path.length >= end.length &&
           memcmp(path.bytes + path.length - end.length, end.bytes, end.length) == 0;
}

/* Names that a file may have but no package. npm's clients are recognized by Accept anyway. */
static bool is_file(struct slice segment)
{
    static const struct slice endings[] = {
        SLICE_LITERAL(".txt"), SLICE_LITERAL(".html"), SLICE_LITERAL(".htm"),
        SLICE_LITERAL(".xml"), SLICE_LITERAL(".json"), SLICE_LITERAL(".yaml"),
        SLICE_LITERAL(".yml"), SLICE_LITERAL(".md"),   SLICE_LITERAL(".sh"),
        SLICE_LITERAL(".css"), SLICE_LITERAL(".png"),  SLICE_LITERAL(".svg"),
        SLICE_LITERAL(".pdf"), SLICE_LITERAL(".gz"),   SLICE_LITERAL(".tgz"),
        SLICE_LITERAL(".bz2"), SLICE_LITERAL(".xz"),   SLICE_LITERAL(".zst"),
        SLICE_LITERAL(".tar"), SLICE_LITERAL(".zip"),  SLICE_LITERAL(".whl"),
        SLICE_LITERAL(".deb"), SLICE_LITERAL(".rpm"),  SLICE_LITERAL(".crate"),
        SLICE_LITERAL(".jar"), SLICE_LITERAL(".exe"),  SLICE_LITERAL(".iso"),
        SLICE_LITERAL(".img"), SLICE_LITERAL(".bin"),  SLICE_LITERAL(".pem"),
        SLICE_LITERAL(".asc"), SLICE_LITERAL(".sig"),
    };
    for (size_t i = 0; i < ARRAY_LENGTH(endings); i++)
        if (ends_with(segment, endings[i]))
            return true;
    return false;
}

/* /NAME, /@SCOPE%2fNAME or /@SCOPE/NAME under the rule, perhaps with a version or `latest`
 * behind. */
static bool is_package(struct slice rest, struct slice path)
{
    struct slice segment;
    (void)path;
    if (!next_segment(&rest, &segment) || segment.bytes[0] == '-')
        return false;
    bool encoded = false;
    for (size_t i = 0; i + 3 <= segment.length; i++)
        encoded = encoded ||
                  slice_equal_nocase((struct slice){segment.bytes + i, 3}, SLICE_LITERAL("%2f"));
    if (segment.bytes[0] == '@' && !encoded && !next_segment(&rest, &segment))
        return false;
    if (is_file(segment))
        return false;
    return !next_segment(&rest, &segment) || (is_version(segment) && is_last(rest));
}

/* .../simple/ and .../simple/NAME/ at the upstream. devpi writes +simple. */
static bool is_simple(struct slice rest, struct slice path)
{
    struct slice segment;
    (void)rest;
    while (next_segment(&path, &segment)) {
        if (!slice_equal(segment, SLICE_LITERAL("simple")) &&
            !slice_equal(segment, SLICE_LITERAL("+simple")))
            continue;
        if (is_last(path) || (next_segment(&path, &segment) && is_last(path)))
            return true;
    }
    return false;
}

static bool is_cargo_config(struct slice rest, struct slice path)
{
    (void)path;
    return ends_with(rest, SLICE_LITERAL("/config.json"));
}

static bool is_lfs_batch(struct slice rest, struct slice path)
{
    (void)path;
    return ends_with(rest, SLICE_LITERAL("/objects/batch"));
}

static bool is_none(struct slice rest, struct slice path)
{
    (void)rest, (void)path;
    return false;
}

/* --- the table --- */

/* A row applies to requests whose path has this shape or whose Accept names `asked`, and to answers
 * of one of these types. The first row that applies counts, so config.json is cargo's and no
 * package of npm. */
static const struct row {
    enum rewrite_format format;
    bool post; /* else GET and HEAD */
    bool (*shape)(struct slice rest, struct slice path);
    const char *asked;
    const char *types[TYPES_MAX];
} rows[] = {
    {REWRITE_CARGO,
     false,
     is_cargo_config,
     NULL,
     {"application/json", "text/plain", "application/octet-stream", "binary/octet-stream",
      NO_TYPE}},
    {REWRITE_NPM, false, is_package, NPM_ABBREVIATED, {NPM_ABBREVIATED, "application/json"}},
    {REWRITE_PYPI_JSON, false, is_simple, PYPI_JSON, {PYPI_JSON}},
    {REWRITE_PYPI_HTML, false, is_simple, PYPI_HTML, {PYPI_HTML, "text/html"}},
    {REWRITE_PYPI_HTML, false, is_none, PYPI_JSON, {PYPI_HTML, "text/html"}},
    {REWRITE_GIT_LFS, true, is_lfs_batch, NULL, {GIT_LFS, "application/json"}},
};

/* A media type without its parameters. */
static struct slice cut_type(struct slice value)
{
    const char *semicolon = value.length > 0 ? memchr(value.bytes, ';', value.length) : NULL;
    if (semicolon)
        value.length = (size_t)(semicolon - value.bytes);
    return field_trim(value);
}

static bool accepts(const struct request_head *head, const char *type)
{
    for (size_t i = 0; type && i < head->field_count; i++) {
        struct slice list = head->fields[i].value, element;
        if (!slice_equal_nocase(head->fields[i].name, SLICE_LITERAL("Accept")))
            continue;
        while (field_list_next(&list, &element))
            if (slice_equal_nocase(cut_type(element), slice_of(type)))
                return true;
    }
    return false;
}

uint32_t rewrite_route_candidates(const struct request_head *head, struct slice rest,
                                  struct slice path)
{
    bool get = slice_equal(head->method, SLICE_LITERAL("GET")) ||
               slice_equal(head->method, SLICE_LITERAL("HEAD"));
    bool post = slice_equal(head->method, SLICE_LITERAL("POST"));
    uint32_t candidates = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if ((rows[i].post ? post : get) &&
            (rows[i].shape(rest, path) || accepts(head, rows[i].asked)))
            candidates |= 1u << i;
    return candidates;
}

/* True for UTF-16 and UTF-32, in which a quote is more than one byte. */
static bool is_wide(struct slice content_type)
{
    for (size_t i = 0; i + 4 <= content_type.length; i++) {
        struct slice at = {content_type.bytes + i, 4};
        if (slice_equal_nocase(at, SLICE_LITERAL("f-16")) ||
            slice_equal_nocase(at, SLICE_LITERAL("f-32")))
            return true;
    }
    return false;
}

enum rewrite_format rewrite_route_choose(uint32_t candidates, struct slice content_type)
{
    struct slice type = cut_type(content_type);
    if (is_wide(content_type))
        return REWRITE_NONE;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        for (size_t k = 0; (candidates >> i & 1) != 0 && k < TYPES_MAX; k++)
            if (rows[i].types[k] && slice_equal_nocase(type, slice_of(rows[i].types[k])))
                return rows[i].format;
    return REWRITE_NONE;
}
