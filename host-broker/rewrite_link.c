/* One link of a document: see rewrite_link.h. */
#include "host-broker/rewrite_link.h"

#include <stdint.h>

#include "host-broker/target.h"
#include "host-broker/url_reference.h"

#define CLEAN_MAX 16384 /* escapes of cleaning included; a longer link stays */

/* The link in its clean form, and where in the document each byte of it comes from. */
struct clean_link {
    char bytes[CLEAN_MAX];
    uint16_t from[CLEAN_MAX + 1];
    struct url_text text;
    size_t first; /* byte of the document where the link begins behind white space */
};

static bool is_white(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == '\f';
}

static void add_byte(struct clean_link *clean, char byte, size_t at, bool *before_query)
{
    size_t before = clean->text.length;
    url_text_append_clean(&clean->text, (unsigned char)byte, before_query);
    for (size_t i = before; i < clean->text.length; i++)
        clean->from[i] = (uint16_t)at;
}

/* Tabs and ends of lines stand for nothing in a URL, white space at its ends neither (WHATWG URL). */
static bool clean_link(struct clean_link *clean, struct slice raw,
                       const struct rewrite_notation *notation)
{
    bool before_query = true;
    size_t solid = 0; /* length without white space at the end */
    clean->text = (struct url_text){.bytes = clean->bytes, .size = CLEAN_MAX};
    for (size_t at = 0; at < raw.length;) {
        char bytes[REWRITE_CHARACTER_MAX];
        size_t count;
        size_t taken =
            notation->read((struct slice){raw.bytes + at, raw.length - at}, bytes, &count);
        if (taken == 0)
            return false;
        for (size_t i = 0; i < count; i++) {
            bool blank = is_white(bytes[i]);
            if (blank && (bytes[i] != ' ' || clean->text.length == 0))
                continue;
            if (clean->text.length == 0)
                clean->first = at;
            add_byte(clean, bytes[i], at, &before_query);
            if (!blank)
                solid = clean->text.length;
        }
        at += taken;
    }
    clean->from[clean->text.length] = (uint16_t)raw.length;
    bool overflow = clean->text.overflow;
    clean->text.length = solid;
    return !overflow && solid > 0;
}

/* Relative links and other schemes stay. */
static bool is_judged(const struct url_reference *reference)
{
    bool rooted = reference->path.length > 0 && reference->path.bytes[0] == '/';
    return url_reference_is_http(reference) && (reference->has_authority || rooted);
}

/* Appends the address inside as far as it is new; *kept is where the kept part of the clean link begins, or
 * its end when nothing is kept. */
static void append_new(struct url_text *out, const struct url_reference *reference,
                       const struct location_context *context, const struct upstream_url *origin,
                       bool origin_valid, const char **kept)
{
    const struct rule *rule = NULL;
    struct slice rest = reference->path;
    bool path_valid = target_check_path(reference->path) == TARGET_FAULT_NONE;
    if (origin_valid && path_valid)
        rule = url_find_rule(context->rules, context->rule, origin, reference->path, &rest);
    url_text_append(out, slice_of(context->guest_url));
    if (rule) {
        url_text_append(out, SLICE_LITERAL("/"));
        url_text_append(out, slice_of(rule->name));
    } else {
        url_text_append_undeclared(out, origin, origin_valid, reference->authority);
    }
    if (path_valid)
        *kept = rest.bytes;
}

size_t rewrite_link(char *out, size_t size, struct slice raw,
                    const struct rewrite_notation *notation, const struct location_context *context,
                    struct upstream_url *origin)
{
    static struct clean_link clean; /* large; there is one thread */
    struct upstream_url found;
    if (raw.length > REWRITE_LINK_MAX || !clean_link(&clean, raw, notation))
        return 0;
    struct url_reference reference = url_reference_cut(url_text_slice(&clean.text));
    if (!is_judged(&reference))
        return 0;
    bool origin_valid = url_reference_origin(&found, &reference, context->origin);
    if (origin && origin_valid && reference.has_authority)
        *origin = found;

    if (size >
        raw.length + REWRITE_LINK_GROWTH) /* the outcome must not depend on the room there is */
        size = raw.length + REWRITE_LINK_GROWTH;
    struct url_text text = {.bytes = out, .size = size};
    const char *end = clean.bytes + clean.text.length;
    const char *kept = end;
    url_text_append(&text, (struct slice){raw.bytes, clean.first});
    append_new(&text, &reference, context, &found, origin_valid, &kept);
    if (notation->root_slash && reference.path.length == 0)
        url_text_append(&text, SLICE_LITERAL("/"));
    size_t tail = clean.from[kept - clean.bytes];
    url_text_append(&text, (struct slice){raw.bytes + tail, raw.length - tail});
    return text.overflow ? 0 : text.length;
}
