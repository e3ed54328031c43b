/* One link of a document, rewritten to its address in the guest: the part before the rule's path is
 * replaced.
 *
 *     https:\/\/files.example\/packages\/a\/x.whl#sha256=1
 *     http://127.0.0.1:8788/files\/a\/x.whl#sha256=1
 *
 * The rule is found for the link's clean form (url_reference.h); what is kept of the link is kept
 * byte for byte as the document wrote it, escapes included. So only the beginning of a link ever
 * changes.
 *
 * A link that lies under a rule becomes GUEST-URL/NAME/...; a link to a host without a rule becomes
 * GUEST-URL/_undeclared/HOST/..., with its path, because clients take the names of files from it. A
 * path that no request may have (dot segments, control characters) lies under no rule and is not
 * kept. A link that begins with one slash is resolved against the context's origin, which is
 * another one in the guest. Unchanged are relative links, addresses of other schemes than http and
 * https, links that are malformed in the document's notation, and those longer than
 * REWRITE_LINK_MAX.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_LINK_INTERNAL_H
#define HOST_BROKER_REWRITE_REWRITE_LINK_INTERNAL_H

#include <stddef.h>

#include "host-broker/base/slice.h"
#include "host-broker/rules/location.h"

#define REWRITE_LINK_MAX 8192 /* bytes of the document */
/* How much longer than itself a link can become: GUEST-URL/_undeclared/HOST, all of HOST
 * encoded. */
#define REWRITE_LINK_GROWTH 2048
#define REWRITE_CHARACTER_MAX 4

/* How a document writes the characters of a text. */
struct rewrite_notation {
    /* Decodes the character at the start of `rest` (not empty): stores its bytes and their number.
     * Returns how many bytes of the document it takes, or 0 when it is malformed. */
    size_t (*read)(struct slice rest, char bytes[REWRITE_CHARACTER_MAX], size_t *count);
    bool root_slash; /* https://HOST becomes GUEST-URL/NAME/ rather than GUEST-URL/NAME */
};

extern const struct rewrite_notation rewrite_json_notation; /* RFC 8259 section 7 */

/* WHATWG HTML section 13.2.5.72. Of the named references only those of characters in URLs are
 * known. */
extern const struct rewrite_notation rewrite_html_notation;

/* Writes the rewritten link, without a NUL, and returns its length; 0 when it stays as it is.
 * `size` is at least raw.length + REWRITE_LINK_GROWTH. The context's path is not used. *origin (may
 * be NULL) is set when the link names an origin that a rule could have. */
size_t rewrite_link(char *out, size_t size, struct slice raw,
                    const struct rewrite_notation *notation, const struct location_context *context,
                    struct upstream_url *origin);

#endif
