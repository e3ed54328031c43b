/* One link of a document: see rewrite_link.h. */
#include "host-broker/rewrite/rewrite_link.h"

#include <stdint.h>

#include "host-broker/base/byte_block.h"
#include "host-broker/http/target.h"
#include "host-broker/http/url_reference.h"

#define CLEAN_MAX 16384 /* escapes of cleaning included; a longer link stays */

/* The link in its clean form, and where in the document each byte of it comes from. */
struct clean_link {
    struct slice
        path_text; /* what is judged: up to the query. In `bytes`, or in the document itself */
    bool same;     /* the latter: it was clean as it stood */
    bool simple;   /* its path is one that a target can hold */
    char bytes[CLEAN_MAX];
    uint16_t from[CLEAN_MAX + 1];
    struct url_text text;
    size_t first; /* byte of the document where the link begins behind white space */
};

static bool is_white(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == '\f';
}

static bool ends_path(char byte)
{
    return byte == '?' || byte == '#';
}

static void add_byte(struct clean_link *clean, char byte, size_t at)
{
    bool before_query = true;
    size_t before = clean->text.length;
    url_text_append_clean(&clean->text, (unsigned char)byte, &before_query);
    for (size_t i = before; i < clean->text.length; i++)
        clean->from[i] = (uint16_t)at;
}

/* How many plain bytes there are up to the query (byte_block.h). *simple: all of them are, and no segment
 * begins with a dot, so no path in them is one that a target cannot hold. */
static size_t plain_length(struct slice raw, bool *simple)
{
    char before = '/';
    *simple = true;
    for (size_t at = 0; at < raw.length; at += BYTE_RUN) {
        char filled[BYTE_RUN] = "";
        const char *run = raw.bytes + at;
        if (raw.length - at < BYTE_RUN)
            run = memcpy(filled, run, raw.length - at); /* a NUL ends it */
        size_t plain = byte_run_link(run, before, simple);
        if (plain < BYTE_RUN)
            return at + plain;
        before = run[BYTE_RUN - 1];
    }
    return raw.length;
}

static void add_character(struct clean_link *clean, const char *bytes, size_t count, size_t at,
                          size_t *solid)
{
    for (size_t i = 0; i < count; i++) {
        bool white = is_white(bytes[i]);
        if (white && (bytes[i] != ' ' || *solid == 0))
            continue;
        add_byte(clean, bytes[i], at);
        if (white)
            continue;
        clean->first = *solid > 0 ? clean->first : at;
        *solid = clean->text.length;
    }
}

/* Plain bytes: the same as add_character for each of them. */
static void add_plain(struct clean_link *clean, struct slice plain, size_t at, size_t *solid)
{
    size_t before = clean->text.length;
    url_text_append(&clean->text, plain);
    if (clean->text.overflow)
        return;
    for (size_t i = 0; i < plain.length; i++)
        clean->from[before + i] = (uint16_t)(at + i);
    clean->first = *solid > 0 ? clean->first : at;
    *solid = clean->text.length;
}

/* One character, or plain bytes as far as they go. Returns how many bytes of the document were taken; 0 at
 * the query, or when it is malformed (*sound becomes false). */
static size_t add_some(struct clean_link *clean, struct slice rest,
                       const struct rewrite_notation *notation, size_t at, size_t *solid,
                       bool *sound)
{
    bool simple;
    char bytes[REWRITE_CHARACTER_MAX] = {rest.bytes[0]};
    size_t count = 1, taken = plain_length(rest, &simple);
    if (taken > 0) {
        add_plain(clean, (struct slice){rest.bytes, taken}, at, solid);
        return taken;
    }
    taken = notation->read(rest, bytes, &count);
    *sound = taken > 0;
    if (taken == 0 || ends_path(bytes[0]))
        return 0;
    add_character(clean, bytes, count, at, solid);
    return taken;
}

/* Up to the query or fragment, which decide nothing. Tabs and ends of lines stand for nothing in a URL, white
 * space at its ends neither (WHATWG URL). False when it is malformed, too long, or empty. */
static bool clean_link(struct clean_link *clean, struct slice raw,
                       const struct rewrite_notation *notation)
{
    size_t at = plain_length(raw, &clean->simple), taken;
    size_t solid = 0; /* length without white space at the end */
    bool sound = true;
    clean->first = 0;
    clean->path_text = (struct slice){raw.bytes, at};
    clean->same = at > 0 && (at == raw.length || ends_path(raw.bytes[at]));
    if (clean->same)
        return true;
    clean->text = (struct url_text){.bytes = clean->bytes, .size = CLEAN_MAX};
    for (at = 0; at < raw.length; at += taken) {
        struct slice rest = {raw.bytes + at, raw.length - at};
        taken = add_some(clean, rest, notation, at, &solid, &sound);
        if (taken == 0)
            break;
    }
    if (!sound || clean->text.overflow || solid == 0)
        return false;
    clean->from[clean->text.length] = (uint16_t)at;
    clean->path_text = (struct slice){clean->bytes, solid};
    bool plain = plain_length(clean->path_text, &clean->simple) == solid;
    clean->simple = clean->simple && plain;
    return true;
}

/* The byte of the document that this byte of the clean text comes from. */
static size_t document_offset(const struct clean_link *clean, const char *byte)
{
    size_t offset = (size_t)(byte - clean->path_text.bytes);
    return clean->same ? offset : clean->from[offset];
}

/* Relative links and other schemes stay. */
static bool is_judged(const struct url_reference *reference)
{
    bool rooted = reference->path.length > 0 && reference->path.bytes[0] == '/';
    return url_reference_is_http(reference) && (reference->has_authority || rooted);
}

/* Appends the address inside as far as it is new. Returns where the part of the clean link begins that is
 * kept, or NULL when nothing is. */
static const char *append_new(struct url_text *out, const struct url_reference *reference,
                              const struct location_context *context,
                              const struct upstream_url *origin, bool origin_valid, bool path_valid)
{
    const struct rule *rule = NULL;
    struct slice rest = reference->path;
    if (origin_valid && path_valid)
        rule = rules_find_address(context->rules, context->rule, origin, reference->path, &rest);
    url_text_append(out, slice_of(context->guest_url));
    if (rule) {
        url_text_append(out, SLICE_LITERAL("/"));
        url_text_append(out, slice_of(rule->name));
    } else {
        url_text_append_undeclared(out, origin, origin_valid, reference->authority);
    }
    return path_valid ? rest.bytes : NULL;
}

size_t rewrite_link(char *out, size_t size, struct slice raw,
                    const struct rewrite_notation *notation, const struct location_context *context,
                    struct upstream_url *origin)
{
    static struct clean_link clean; /* large; there is one thread */
    struct upstream_url found;
    if (raw.length > REWRITE_LINK_MAX || !clean_link(&clean, raw, notation))
        return 0;
    struct url_reference reference = url_reference_cut(clean.path_text);
    if (!is_judged(&reference))
        return 0;
    bool path_valid = clean.simple || target_check_path(reference.path) == TARGET_FAULT_NONE;
    bool origin_valid = url_reference_origin(&found, &reference, context->origin);
    if (origin && origin_valid && reference.has_authority)
        *origin = found;

    if (size >
        raw.length + REWRITE_LINK_GROWTH) /* the outcome must not depend on the room there is */
        size = raw.length + REWRITE_LINK_GROWTH;
    struct url_text text = {.bytes = out, .size = size};
    url_text_append(&text, (struct slice){raw.bytes, clean.first});
    const char *kept = append_new(&text, &reference, context, &found, origin_valid, path_valid);
    if (notation->root_slash && reference.path.length == 0)
        url_text_append(&text, SLICE_LITERAL("/"));
    size_t tail = kept ? document_offset(&clean, kept) : raw.length;
    url_text_append(&text, (struct slice){raw.bytes + tail, raw.length - tail});
    return text.overflow ? 0 : text.length;
}
