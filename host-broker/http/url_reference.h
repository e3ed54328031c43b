/* A URL as an answer holds it (in a header or in a document), cut into its parts (RFC 3986) for the
 * question of section 8 of the design: under which rule does it lie?
 *
 * Nothing is compared as text: scheme and host without case, the effective port, and a path prefix that
 * ends at a segment boundary. What is cleaned, cut and normalised here is for judging only; what is
 * passed on, the callers decide. A clean text is what browsers would read: bytes that no URL may hold are
 * percent-encoded and backslashes before the query are slashes.
 */
#ifndef HOST_BROKER_HTTP_URL_REFERENCE_H
#define HOST_BROKER_HTTP_URL_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "host-broker/base/slice.h"
#include "host-broker/http/upstream_url.h"

/* A text that grows in a buffer of the caller's, always with room for a NUL behind it. */
struct url_text {
    char *bytes;
    size_t size, length;
    bool overflow; /* sticky */
};

void url_text_append(struct url_text *text, struct slice piece);

/* %XX */
void url_text_append_encoded(struct url_text *text, unsigned char byte);

/* The next byte of a URL, cleaned. *before_query begins true, and is kept by the caller. */
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

/* True when it can lead to an upstream: no scheme, or http or https with an authority. */
bool url_reference_is_http(const struct url_reference *reference);

/* The origin that a reference names, seen from `base`. False when its host is none that could be
 * declared: user information, a host that upstream_url_parse_authority refuses. */
bool url_reference_origin(struct upstream_url *out, const struct url_reference *reference,
                          const struct upstream_url *base);

/* Appends "/_undeclared/HOST", where HOST is the origin's, or for an invalid one the authority without
 * user information. What a target could not hold is percent-encoded. */
void url_text_append_undeclared(struct url_text *out, const struct upstream_url *origin,
                                bool origin_valid, struct slice authority);

/* Reads HOST of a target "/_undeclared/HOST/...", decoded for use in a message, with a NUL. 0, or
 * -EINVAL when it is no host. */
int url_reference_undeclared_host(const struct target *target, char *out, size_t size);

#endif
