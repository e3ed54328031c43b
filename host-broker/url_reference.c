/* URLs of answers, cut and looked up among the rules: see url_reference.h. */
#include "host-broker/url_reference.h"

#include <stdio.h>

#include "host-broker/field.h"
#include "host-broker/target.h"

void url_text_append(struct url_text *text, struct slice piece)
{
    if (text->overflow || text->size - text->length <= piece.length) {
        text->overflow = true;
        return;
    }
    if (piece.length > 0)
        memcpy(text->bytes + text->length, piece.bytes, piece.length);
    text->length += piece.length;
}

void url_text_append_encoded(struct url_text *text, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};
    url_text_append(text, (struct slice){escape, 3});
}

void url_text_append_clean(struct url_text *text, unsigned char byte, bool *before_query)
{
    char same = (char)byte;
    if (byte == '?' || byte == '#')
        *before_query = false;
    if (byte <= ' ' || byte >= 0x7f)
        url_text_append_encoded(text, byte);
    else if (byte == '\\' && *before_query)
        url_text_append(text, SLICE_LITERAL("/"));
    else
        url_text_append(text, (struct slice){&same, 1});
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

struct url_reference url_reference_cut(struct slice text)
{
    struct url_reference cut = {0};
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

bool url_reference_is_http(const struct url_reference *reference)
{
    return !reference->has_scheme ||
           (reference->has_authority &&
            (slice_equal_nocase(reference->scheme, SLICE_LITERAL("https")) ||
             slice_equal_nocase(reference->scheme, SLICE_LITERAL("http"))));
}

bool url_reference_origin(struct upstream_url *out, const struct url_reference *reference,
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

static bool is_unreserved(int byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

void url_text_append_undeclared(struct url_text *out, const struct upstream_url *origin,
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
    url_text_append(out, SLICE_LITERAL("/" TARGET_UNDECLARED "/"));
    size_t start = out->length;
    for (size_t i = 0; i < authority.length; i++) {
        unsigned char byte = (unsigned char)authority.bytes[i];
        if (is_unreserved(byte) || byte == ':')
            url_text_append(out, (struct slice){&authority.bytes[i], 1});
        else
            url_text_append_encoded(out, byte);
    }
    struct slice written = {out->bytes + start, out->length - start};
    if (target_check_path(written) != TARGET_FAULT_NONE)
        out->length = start; /* a host of dots: the answer will name none */
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

const struct rule *url_find_rule(const struct rules *rules, const struct rule *preferred,
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
