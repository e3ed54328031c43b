/* Derives the entity tags of rewritten documents, and restores the upstream's. */
#include "host-broker/rewrite/rewrite_etag.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#define REWRITE_VERSION "1" /* to be changed with what rewriting makes of a document */
#define INFIX "~codev-"
#define SUFFIX_LENGTH (sizeof(INFIX "s-") - 1 + REWRITE_MARK_LENGTH)

/* FNV-1a, 64 bits; the NUL behind each text counts. */
static uint64_t add_text(uint64_t hash, const char *text)
{
    size_t i = 0;
    do
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    while (text[i++] != '\0');
    return hash;
}

void rewrite_etag_mark(char mark[REWRITE_MARK_LENGTH + 1], const char *guest_url,
                       const struct rules *rules)
{
    uint64_t hash = add_text(0xcbf29ce484222325u, REWRITE_VERSION);
    hash = add_text(hash, guest_url);
    for (size_t i = 0; i < rules->count; i++) {
        char origin[UPSTREAM_ORIGIN_MAX];
        upstream_url_origin(&rules->rules[i].url, origin, sizeof(origin));
        hash = add_text(hash, rules->rules[i].name);
        hash = add_text(hash, origin);
        hash = add_text(hash, rules->rules[i].url.path);
    }
    snprintf(mark, REWRITE_MARK_LENGTH + 1, "%016llx", (unsigned long long)hash);
}

/* Cuts an entity tag off the front of *rest: *opaque is the text between its quotes. False when
 * there is none. */
static bool cut_tag(struct slice *rest, bool *weak, struct slice *opaque)
{
    struct slice text = *rest;
    *weak = text.length >= 2 && text.bytes[0] == 'W' && text.bytes[1] == '/';
    size_t at = *weak ? 2 : 0;
    if (at >= text.length || text.bytes[at] != '"')
        return false;
    const char *end = memchr(text.bytes + at + 1, '"', text.length - at - 1);
    if (!end)
        return false;
    *opaque = (struct slice){text.bytes + at + 1, (size_t)(end - text.bytes) - at - 1};
    *rest = (struct slice){end + 1, text.length - (size_t)(end + 1 - text.bytes)};
    return true;
}

int rewrite_etag_derive(char out[REWRITE_ETAG_MAX], struct slice etag, const char *mark)
{
    struct slice opaque;
    bool weak;
    if (!cut_tag(&etag, &weak, &opaque) || etag.length > 0)
        return -EINVAL;
    int length = snprintf(out, REWRITE_ETAG_MAX, "W/\"%.*s" INFIX "%c-%s\"", (int)opaque.length,
                          opaque.bytes, weak ? 'w' : 's', mark);
    return length < 0 || length >= REWRITE_ETAG_MAX ? -EINVAL : length;
}

/* True for a tag of a rewritten document, whatever its mark. Cuts the suffix off. */
static bool cut_suffix(struct slice *opaque, bool *weak, struct slice *mark)
{
    if (opaque->length < SUFFIX_LENGTH)
        return false;
    const char *suffix = opaque->bytes + opaque->length - SUFFIX_LENGTH;
    char strength = suffix[sizeof(INFIX) - 1];
    if (memcmp(suffix, INFIX, sizeof(INFIX) - 1) != 0 || (strength != 's' && strength != 'w') ||
        suffix[sizeof(INFIX)] != '-')
        return false;
    *weak = strength == 'w';
    *mark = (struct slice){suffix + sizeof(INFIX) + 1, REWRITE_MARK_LENGTH};
    opaque->length -= SUFFIX_LENGTH;
    return true;
}

static void skip_separators(struct slice *rest)
{
    while (rest->length > 0 &&
           (rest->bytes[0] == ' ' || rest->bytes[0] == '\t' || rest->bytes[0] == ',')) {
        rest->bytes++;
        rest->length--;
    }
}

int rewrite_etag_restore(char out[REWRITE_MATCH_MAX], struct slice value, const char *mark,
                         struct rewrite_match *match)
{
    size_t length = 0;
    *match = (struct rewrite_match){0};
    if (value.length >= REWRITE_MATCH_MAX / 2)
        return -EINVAL;
    for (skip_separators(&value); value.length > 0; skip_separators(&value)) {
        struct slice opaque, tag_mark;
        bool weak;
        if (!cut_tag(&value, &weak, &opaque))
            return -EINVAL; /* also for `*` */
        if (cut_suffix(&opaque, &weak, &tag_mark)) {
            bool present = slice_equal(tag_mark, slice_of(mark));
            match->restored = match->restored || present;
            match->dropped = match->dropped || !present;
            if (!present)
                continue;
        }
        length += (size_t)snprintf(out + length, REWRITE_MATCH_MAX - length, "%s%s\"%.*s\"",
                                   length > 0 ? ", " : "", weak ? "W/" : "", (int)opaque.length,
                                   opaque.bytes);
    }
    return (int)length;
}
