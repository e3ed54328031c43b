/* A URL in a header or a document of an answer, cut into its parts (RFC 3986) to find the rule
 * under which it lies.
 *
 * The text is cleaned first, as browsers read it: bytes that are invalid in a URL are
 * percent-encoded, and backslashes before the query become slashes. The clean form is for finding
 * the rule only; the callers decide what of the original text is passed on.
 */
#ifndef HOST_BROKER_HTTP_URL_REFERENCE_H
#define HOST_BROKER_HTTP_URL_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "host-broker/base/slice.h"
#include "host-broker/http/upstream_url.h"

/* A text in a buffer of the caller, which always keeps room for a NUL. */
struct url_text {
    char *bytes;
    size_t size, length;
    bool overflow; /* sticky */
};

void url_text_append(struct url_text *text, struct slice piece);

/* Appends %XX. */
void url_text_append_encoded(struct url_text *text, unsigned char byte);

/* Appends the next byte of a URL, cleaned. The caller keeps *before_query, initially true, between
 * calls. */
void url_text_append_clean(struct url_text *text, unsigned char byte, bool *before_query);

static inline struct slice url_text_slice(const struct url_text *text)
{
    return (struct slice){text->bytes, text->length};
}

/* A reference cut as RFC 3986 appendix B does it. */
struct url_reference {
    struct slice scheme, authority, path, query, fragment;
    bool has_scheme, has_authority, has_query, has_fragment;
};

/* Cuts a clean text; slices point into it. */
struct url_reference url_reference_cut(struct slice text);

/* True for a reference without a scheme, and for http or https with an authority. */
bool url_reference_is_http(const struct url_reference *reference);

/* The origin of a reference, resolved against `base`. False when no rule could have it: the
 * authority has user information, or upstream_url_parse_authority refuses it. */
bool url_reference_origin(struct upstream_url *out, const struct url_reference *reference,
                          const struct upstream_url *base);

/* Appends "/_undeclared/HOST". HOST is the origin's host and port; if the origin is not valid, the
 * authority without user information. Bytes that are invalid in a target are percent-encoded. */
void url_text_append_undeclared(struct url_text *out, const struct upstream_url *origin,
                                bool origin_valid, struct slice authority);

/* Reads HOST of a target "/_undeclared/HOST/...", decoded for use in a message, with a NUL. 0, or
 * -EINVAL when it is no host. */
int url_reference_undeclared_host(const struct target *target, char *out, size_t size);

#endif
