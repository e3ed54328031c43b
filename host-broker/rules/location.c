/* Rewrites Location in three steps: the value is cleaned and cut into parts (url_reference.h), the
 * parts are resolved against the request's URL, and the result is looked up among the rules. A
 * client that follows the new value makes a request that is checked like every other, so a wrong
 * result here gives no access.
 */
#include "host-broker/rules/location.h"

#include <errno.h>
#include <limits.h>

#include "host-broker/http/field.h"
#include "host-broker/http/target.h"
#include "host-broker/http/url_reference.h"

static void clean(struct url_text *out, struct slice value)
{
    bool before_query = true;
    for (size_t i = 0; i < value.length; i++)
        url_text_append_clean(out, (unsigned char)value.bytes[i], &before_query);
}

/* RFC 3986 section 5.2.4, in place; the text begins with a slash. */
static void remove_dot_segments(struct url_text *path)
{
    size_t out = 0;
    for (size_t at = 0; at < path->length;) {
        size_t end = at + 1;
        while (end < path->length && path->bytes[end] != '/')
            end++;
        struct slice segment = {path->bytes + at + 1, end - at - 1};
        bool up = slice_equal(segment, SLICE_LITERAL(".."));
        if (up) {
            while (out > 0 && path->bytes[--out] != '/')
                ;
        }
        if (up || slice_equal(segment, SLICE_LITERAL("."))) {
            if (end == path->length)
                path->bytes[out++] = '/';
        } else {
            memmove(path->bytes + out, path->bytes + at, end - at);
            out += end - at;
        }
        at = end;
    }
    path->length = out;
}

/* RFC 3986 section 5.2.2: the reference's path, resolved against the base path. */
static void resolve_path(struct url_text *out, const struct url_reference *reference,
                         struct slice base)
{
    const char *query = base.length > 0 ? memchr(base.bytes, '?', base.length) : NULL;
    if (query)
        base.length = (size_t)(query - base.bytes);
    if (reference->path.length > 0 && reference->path.bytes[0] == '/') {
        url_text_append(out, reference->path);
    } else if (reference->has_authority) {
        url_text_append(out, SLICE_LITERAL("/"));
    } else if (reference->path.length == 0) {
        url_text_append(out, base);
    } else {
        while (base.length > 0 && base.bytes[base.length - 1] != '/')
            base.length--;
        url_text_append(out, base.length > 0 ? base : SLICE_LITERAL("/"));
        url_text_append(out, reference->path);
    }
    if (!out->overflow)
        remove_dot_segments(out);
}

static int finish(struct url_text *out)
{
    if (out->overflow || out->length > INT_MAX)
        return -ENOSPC;
    out->bytes[out->length] = '\0';
    return (int)out->length;
}

static int rewrite(struct url_text *out, const struct url_reference *reference,
                   const struct location_context *context)
{
    char path_bytes[LOCATION_MAX];
    struct url_text path = {.bytes = path_bytes, .size = sizeof(path_bytes)};
    struct upstream_url origin;
    struct slice rest;
    const struct rule *rule = NULL;

    resolve_path(&path, reference, context->path);
    if (path.overflow)
        return -EMSGSIZE;
    bool origin_valid = url_reference_origin(&origin, reference, context->origin);
    if (origin_valid && target_check_path(url_text_slice(&path)) == TARGET_FAULT_NONE)
        rule = rules_find_address(context->rules, context->rule, &origin, url_text_slice(&path),
                                  &rest);

    if (!rule && context->declared_only)
        return 0;
    url_text_append(out, slice_of(context->guest_url));
    if (!rule) {
        url_text_append_undeclared(out, &origin, origin_valid, reference->authority);
        return finish(out);
    }
    url_text_append(out, SLICE_LITERAL("/"));
    url_text_append(out, slice_of(rule->name));
    url_text_append(out, rest);
    if (reference->has_query) {
        url_text_append(out, SLICE_LITERAL("?"));
        url_text_append(out, reference->query);
    }
    if (reference->has_fragment) {
        url_text_append(out, SLICE_LITERAL("#"));
        url_text_append(out, reference->fragment);
    }
    return finish(out);
}

int location_rewrite(char *out, size_t size, struct slice location,
                     const struct location_context *context)
{
    char cleaned_bytes[LOCATION_MAX];
    struct url_text cleaned = {.bytes = cleaned_bytes, .size = sizeof(cleaned_bytes)};

    clean(&cleaned, field_trim(location));
    if (cleaned.overflow)
        return -EMSGSIZE;
    struct url_reference reference = url_reference_cut(url_text_slice(&cleaned));
    if (cleaned.length == 0 || reference.path.length + reference.authority.length == 0)
        if (!reference.has_query)
            return 0; /* the request's own URL, perhaps with a fragment */
    if (!url_reference_is_http(&reference))
        return 0;
    return rewrite(&(struct url_text){.bytes = out, .size = size}, &reference, context);
}
