/* Rewrites the download links in metadata of package registries to addresses that work in the
 * guest.
 *
 * A document is taken in pieces of any size. Bytes that are no link are passed on unchanged; a link
 * is held until its end is known and then written as rewrite_link (rewrite_link_internal.h) says.
 * The format alone decides which strings are links (rewrite_json.c, rewrite_html.c): text is never
 * searched for addresses. From the byte at which a document proves malformed it is passed on
 * unchanged, so nothing is lost. The output does not depend on where the pieces were cut.
 *
 * Memory: one struct rewrite for each stream, about 14 KiB, most of it two buffers.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_H
#define HOST_BROKER_REWRITE_REWRITE_H

#include "host-broker/rewrite/rewrite_format.h"
#include "host-broker/rewrite/rewrite_html_internal.h"
#include "host-broker/rewrite/rewrite_json_internal.h"
#include "host-broker/rewrite/rewrite_stream_internal.h"

/* cargo's config.json is held whole, because only a `dl` in it shows that it is cargo's. A longer
 * file is not taken for one. */
#define REWRITE_WHOLE_MAX 4096
/* Free space that rewrite_finish needs. */
#define REWRITE_FINISH_ROOM (REWRITE_WHOLE_MAX + 2 * REWRITE_LINK_GROWTH + REWRITE_STEP_ROOM)

struct rewrite {
    enum rewrite_format format;
    struct rewrite_stream stream;
    bool whole; /* the document is collected in `document` */
    char document[REWRITE_WHOLE_MAX];
    size_t document_length;
    union {
        struct rewrite_json json;
        struct rewrite_html html;
    };
};

/* Begins a document. Strings of the context must outlive it; its path is not used. */
void rewrite_start(struct rewrite *rewrite, enum rewrite_format format,
                   const struct location_context *context);

/* Takes bytes of the document while the output has REWRITE_STEP_ROOM. Returns how many. */
size_t rewrite_take(struct rewrite *rewrite, struct slice in, struct rewrite_output *out);

/* The document has ended: writes what is still held. `out` has REWRITE_FINISH_ROOM. */
void rewrite_finish(struct rewrite *rewrite, struct rewrite_output *out);

#endif
