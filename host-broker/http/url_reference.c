/* Cleans and cuts URLs of answers; writes and reads /_undeclared/HOST. */
#include "host-broker/http/url_reference.h"

#include <errno.h>

#include "host-broker/http/field.h"

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

/* Cuts *text before the first `mark`; *rest is the text after it. False when there is none. */
static bool cut_at(struct slice *text, char mark, struct slice *rest)
{
    const char *found = text->length > 0 ? memchr(text->bytes, mark, text->length) : NULL;
    if (!found)
        return false;
    size_t length = (size_t)(found - text->bytes);
    *rest = (struct slice){found + 1, text->length - length - 1};
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
    cut.has_fragment = cut_at(&text, '#', &cut.fragment);
    cut.has_query = cut_at(&text, '?', &cut.query);
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

void url_text_append_undeclared(struct url_text *out, const struct upstream_url *origin,
                                bool origin_valid, struct slice authority)
{
    char host[UPSTREAM_ORIGIN_MAX];
    if (origin_valid) {
        upstream_url_authority(origin, host, sizeof(host));
        authority = slice_of(host);
    }
    struct slice after_user;
    while (cut_at(&(struct slice){authority.bytes, authority.length}, '@', &after_user))
        authority = after_user; /* the user information may contain a password */
    url_text_append(out, SLICE_LITERAL("/" TARGET_UNDECLARED "/"));
    size_t start = out->length;
    for (size_t i = 0; i < authority.length; i++) {
        unsigned char byte = (unsigned char)authority.bytes[i];
        if (upstream_url_is_unreserved(byte) || byte == ':')
            url_text_append(out, (struct slice){&authority.bytes[i], 1});
        else
            url_text_append_encoded(out, byte);
    }
    struct slice written = {out->bytes + start, out->length - start};
    if (target_check_path(written) != TARGET_FAULT_NONE)
        out->length = start; /* the host is "." or "..": the answer names none */
}

int url_reference_undeclared_host(const struct target *target, char *out, size_t size)
{
    char text[UPSTREAM_ORIGIN_MAX];
    size_t length = 0;
    enum target_fault fault;
    const struct slice rest = target->rest;

    for (size_t at = 1; at < rest.length && rest.bytes[at] != '/';) {
        int character = target_next_character(rest, &at, &fault);
        if (character < 0 || length == sizeof(text))
            return -EINVAL;
        text[length++] = (char)character;
    }
    struct upstream_url url = {.https = true, .port = 443};
    if (upstream_url_parse_authority(&url, (struct slice){text, length}, NULL) != 0)
        return -EINVAL;
    return upstream_url_authority(&url, out, size) < 0 ? -EINVAL : 0;
}
