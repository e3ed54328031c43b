/* One link of a document, seen from inside: what stands in front of the rule's own part is exchanged.
 *
 *     https:\/\/files.example\/packages\/a\/x.whl#sha256=1   ->   http://127.0.0.1:8788/files\/a\/x.whl#sha256=1
 *
 * The link is judged in its clean form (url_reference.h), but what is kept of it is kept byte for byte, as
 * the document wrote it, with its escapes. So only the beginning of a link ever changes.
 *
 * A link that lies under a rule becomes GUEST-URL/NAME/...; one to a host without a rule becomes
 * GUEST-URL/_undeclared/HOST/..., with its path, since clients take names of files from there. A path that
 * no request could have (dot segments, control characters) lies under no rule, and is not kept. A link
 * that begins with one slash is absolute but for the origin, which inside would be another: it is judged
 * as if the origin stood there. Relative links stay, and so does what is no http or https address, what is
 * malformed in the document's own notation, and what is longer than REWRITE_LINK_MAX.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_LINK_H
#define HOST_BROKER_REWRITE_REWRITE_LINK_H

#include <stddef.h>

#include "host-broker/base/slice.h"
#include "host-broker/rules/location.h"

#define REWRITE_LINK_MAX 8192 /* bytes of the document */
/* How much longer than itself a link can become: GUEST-URL/_undeclared/HOST, all of HOST encoded. */
#define REWRITE_LINK_GROWTH 2048
#define REWRITE_CHARACTER_MAX 4

/* How a document writes the bytes of a text. */
struct rewrite_notation {
    /* Reads one character at the start of `rest` (not empty). Stores its bytes and their number (0: one
     * that stands for nothing), returns how many bytes of the document it takes; 0 when it is malformed. */
    size_t (*read)(struct slice rest, char bytes[REWRITE_CHARACTER_MAX], size_t *count);
    bool root_slash; /* https://HOST becomes GUEST-URL/NAME/ rather than GUEST-URL/NAME */
};

extern const struct rewrite_notation rewrite_json_notation; /* RFC 8259 section 7 */

/* WHATWG HTML section 13.2.5.72, of named references those that stand for characters of URLs. */
extern const struct rewrite_notation rewrite_html_notation;

/* Writes what `raw` becomes, without a NUL, and returns its length; 0 when it stays as it is. `size` is at
 * least raw.length + REWRITE_LINK_GROWTH. The context's path is not used. *origin (may be NULL) is set
 * when the link names an origin that could be declared. */
size_t rewrite_link(char *out, size_t size, struct slice raw,
                    const struct rewrite_notation *notation, const struct location_context *context,
                    struct upstream_url *origin);

#endif
