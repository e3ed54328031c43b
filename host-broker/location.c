/* Where a redirect points, seen from inside.
 *
 * Three steps, each on the result of the last: the value is cleaned (bytes that no URL may hold are
 * percent-encoded, backslashes before the query become slashes, as browsers read them) and cut into parts;
 * the parts are resolved against the address that was asked; the result is looked up among the rules. What
 * comes out is judged again as a request when a client follows it, so nothing here opens anything.
 */
#include "host-broker/location.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "host-broker/field.h"
#include "host-broker/target.h"

struct text {
    char *bytes;
    size_t size, length;
    bool overflow; /* sticky */
};

static void append(struct text *text, struct slice piece)
{
    if (text->overflow || text->size - text->length <= piece.length) {
        text->overflow = true;
        return;
    }
    if (piece.length > 0)
        memcpy(text->bytes + text->length, piece.bytes, piece.length);
    text->length += piece.length;
}

static void append_encoded(struct text *text, unsigned char byte)
{
    char escape[4];
    snprintf(escape, sizeof(escape), "%%%02X", byte);
    append(text, (struct slice){escape, 3});
}

static struct slice text_slice(const struct text *text)
{
    return (struct slice){text->bytes, text->length};
}

/* A reference cut as RFC 3986 appendix B does it. */
struct reference {
    struct slice scheme, authority, path, query, fragment;
    bool has_scheme, has_authority, has_query, has_fragment;
};

static void clean(struct text *out, struct slice value)
{
    bool before_query = true;
    for (size_t i = 0; i < value.length; i++) {
        unsigned char byte = (unsigned char)value.bytes[i];
        if (byte == '?' || byte == '#')
            before_query = false;
        if (byte <= ' ' || byte >= 0x7f)
            append_encoded(out, byte);
        else if (byte == '\\' && before_query)
            append(out, SLICE_LITERAL("/"));
        else
            append(out, (struct slice){&value.bytes[i], 1});
    }
}

/* Cuts what stands behind the first `mark` off `text`, without the mark. */
static bool cut_behind(struct slice *text, char mark, struct slice *behind)
{
    const char *found = text->length > 0 ? memchr(text->bytes, mark, text->length) : NULL;
    if (!found)
        return false;
    size_t length = (size_t)(found - text->bytes);
    *behind = (struct slice){found + 1, text->length - length - 1};
    text->length = length;
    return true;
}

static bool cut_scheme(struct slice *text, struct slice *scheme)
{
    size_t i = 0;
    while (i < text->length && (field_is_token_byte((unsigned char)text->bytes[i])))
        i++;
    if (i == 0 || i == text->length || text->bytes[i] != ':')
        return false;
    *scheme = (struct slice){text->bytes, i};
    text->bytes += i + 1;
    text->length -= i + 1;
    return true;
}

static struct reference cut_reference(struct slice text)
{
    struct reference cut = {0};
    cut.has_fragment = cut_behind(&text, '#', &cut.fragment);
    cut.has_query = cut_behind(&text, '?', &cut.query);
    cut.has_scheme = cut_scheme(&text, &cut.scheme);
    cut.path = text;
    if (text.length >= 2 && text.bytes[0] == '/' && text.bytes[1] == '/') {
        size_t end = 2;
        while (end < text.length && text.bytes[end] != '/')
            end++;
        cut.has_authority = true;
        cut.authority = (struct slice){text.bytes + 2, end - 2};
        cut.path = (struct slice){text.bytes + end, text.length - end};
    }
    return cut;
}

/* RFC 3986 section 5.2.4, in place; the text begins with a slash. */
static void remove_dot_segments(struct text *path)
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

/* Section 5.2.2: the reference's path in the place where it was given. */
static void resolve_path(struct text *out, const struct reference *reference, struct slice base)
{
    struct slice ignored;
    cut_behind(&base, '?', &ignored);
    if (reference->path.length > 0 && reference->path.bytes[0] == '/') {
        append(out, reference->path);
    } else if (reference->has_authority) {
        append(out, SLICE_LITERAL("/"));
    } else if (reference->path.length == 0) {
        append(out, base);
    } else {
        while (base.length > 0 && base.bytes[base.length - 1] != '/')
            base.length--;
        append(out, base.length > 0 ? base : SLICE_LITERAL("/"));
        append(out, reference->path);
    }
    if (!out->overflow)
        remove_dot_segments(out);
}

static bool is_unreserved(int byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    char lower = ascii_lower(byte);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* One character of a path in its normal form (RFC 3986 section 6.2.2): %7E is ~, %2f is %2F, neither is a
 * slash. Encoded ones that stay encoded are told apart by 256. */
static int next_normal(struct slice path, size_t *at)
{
    unsigned char byte = (unsigned char)path.bytes[(*at)++];
    if (byte != '%' || *at + 2 > path.length)
        return byte;
    int high = hex_value(path.bytes[*at]), low = hex_value(path.bytes[*at + 1]);
    if (high < 0 || low < 0)
        return byte;
    *at += 2;
    int value = high * 16 + low;
    return is_unreserved(value) ? value : 256 + value;
}

static bool path_lies_under(struct slice path, struct slice prefix, struct slice *rest)
{
    size_t at = 0;
    for (size_t i = 0; i < prefix.length;) {
        if (at == path.length || next_normal(path, &at) != next_normal(prefix, &i))
            return false;
    }
    if (at < path.length && path.bytes[at] != '/')
        return false;
    *rest = (struct slice){path.bytes + at, path.length - at};
    return true;
}

const struct rule *location_find_rule(const struct rules *rules, const struct rule *preferred,
                                      const struct upstream_url *origin, struct slice path,
                                      struct slice *rest)
{
    const struct rule *best = NULL;
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->rules[i];
        struct slice prefix = {rule->url.path, rule->url.prefix_length};
        struct slice behind;
        if (!upstream_url_same_origin(&rule->url, origin) ||
            !path_lies_under(path, prefix, &behind))
            continue;
        bool longer = !best || prefix.length > best->url.prefix_length;
        bool equal = best && prefix.length == best->url.prefix_length;
        if (longer || (equal && rule == preferred)) {
            best = rule;
            *rest = behind;
        }
    }
    return best;
}

/* The origin that a reference names. False when its host is none that could be declared. */
static bool resolve_origin(struct upstream_url *out, const struct reference *reference,
                           const struct upstream_url *base)
{
    if (!reference->has_authority) {
        *out = *base;
        return true;
    }
    *out = (struct upstream_url){.https = base->https};
    if (reference->has_scheme)
        out->https = slice_equal_nocase(reference->scheme, SLICE_LITERAL("https"));
    out->port = out->https ? 443 : 80;
    return upstream_url_parse_authority(out, reference->authority, NULL) == 0;
}

static void append_undeclared(struct text *out, const struct upstream_url *origin,
                              bool origin_valid, struct slice authority)
{
    char host[UPSTREAM_ORIGIN_MAX];
    if (origin_valid) {
        upstream_url_authority(origin, host, sizeof(host));
        authority = slice_of(host);
    }
    struct slice behind_user;
    while (cut_behind(&(struct slice){authority.bytes, authority.length}, '@', &behind_user))
        authority = behind_user; /* what stands before might be a password */
    append(out, SLICE_LITERAL("/" TARGET_UNDECLARED "/"));
    size_t start = out->length;
    for (size_t i = 0; i < authority.length; i++) {
        unsigned char byte = (unsigned char)authority.bytes[i];
        if (is_unreserved(byte) || byte == ':')
            append(out, (struct slice){&authority.bytes[i], 1});
        else
            append_encoded(out, byte);
    }
    struct slice written = {out->bytes + start, out->length - start};
    if (target_check_path(written) != TARGET_FAULT_NONE)
        out->length = start; /* a host of dots: the answer will name none */
}

static int finish(struct text *out)
{
    if (out->overflow || out->length > INT_MAX)
        return -ENOSPC;
    out->bytes[out->length] = '\0';
    return (int)out->length;
}

static int rewrite(struct text *out, const struct reference *reference,
                   const struct location_context *context)
{
    char path_bytes[LOCATION_MAX];
    struct text path = {.bytes = path_bytes, .size = sizeof(path_bytes)};
    struct upstream_url origin;
    struct slice rest;
    const struct rule *rule = NULL;

    resolve_path(&path, reference, context->path);
    if (path.overflow)
        return -EMSGSIZE;
    bool origin_valid = resolve_origin(&origin, reference, context->origin);
    if (origin_valid && target_check_path(text_slice(&path)) == TARGET_FAULT_NONE)
        rule = location_find_rule(context->rules, context->rule, &origin, text_slice(&path), &rest);

    append(out, slice_of(context->guest_url));
    if (!rule) {
        append_undeclared(out, &origin, origin_valid, reference->authority);
        return finish(out);
    }
    append(out, SLICE_LITERAL("/"));
    append(out, slice_of(rule->name));
    append(out, rest);
    if (reference->has_query) {
        append(out, SLICE_LITERAL("?"));
        append(out, reference->query);
    }
    if (reference->has_fragment) {
        append(out, SLICE_LITERAL("#"));
        append(out, reference->fragment);
    }
    return finish(out);
}

int location_rewrite(char *out, size_t size, struct slice location,
                     const struct location_context *context)
{
    char cleaned_bytes[LOCATION_MAX];
    struct text cleaned = {.bytes = cleaned_bytes, .size = sizeof(cleaned_bytes)};

    clean(&cleaned, field_trim(location));
    if (cleaned.overflow)
        return -EMSGSIZE;
    struct reference reference = cut_reference(text_slice(&cleaned));
    if (cleaned.length == 0 || reference.path.length + reference.authority.length == 0)
        if (!reference.has_query)
            return 0; /* the address that was asked, but for a fragment */
    if (reference.has_scheme && (!reference.has_authority ||
                                 !(slice_equal_nocase(reference.scheme, SLICE_LITERAL("https")) ||
                                   slice_equal_nocase(reference.scheme, SLICE_LITERAL("http")))))
        return 0;
    return rewrite(&(struct text){.bytes = out, .size = size}, &reference, context);
}
