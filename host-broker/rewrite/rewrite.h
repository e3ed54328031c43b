/* Metadata of package registries, passed on with its download links as they are seen from inside.
 *
 * A document goes through in pieces of any size. What is no link is passed on as it comes, byte for byte;
 * a link is held until its end is known, then written as rewrite_link says. Which strings are links is
 * decided by the format (rewrite_json.c, rewrite_html.c) and by nothing else: no text is ever searched for
 * addresses. A document that turns out to be malformed is passed on untouched from there; nothing is
 * lost, and the output does not depend on where the pieces were cut.
 *
 * Memory: this object (two buffers, 12 KiB) for each stream.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_H
#define HOST_BROKER_REWRITE_REWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "host-broker/rewrite/rewrite_html.h"
#include "host-broker/rewrite/rewrite_json.h"
#include "host-broker/rewrite/rewrite_link.h"
#include "host-broker/rules/location.h"

enum rewrite_format {
    REWRITE_NONE,
    REWRITE_NPM,       /* versions.*.dist.tarball, dist.tarball */
    REWRITE_PYPI_JSON, /* files[].url (PEP 691) */
    REWRITE_PYPI_HTML, /* <a href>, <base href> (PEP 503) */
    REWRITE_CARGO,     /* dl, api */
    REWRITE_GIT_LFS,   /* objects[].actions.*.href */
    REWRITE_FORMAT_COUNT
};

/* "npm" and the like, for the log. */
extern const char *const rewrite_format_names[REWRITE_FORMAT_COUNT];

/* Room that is needed in `out` before one more step is made: a whole link. */
#define REWRITE_STEP_ROOM (REWRITE_LINK_MAX + REWRITE_LINK_GROWTH)
/* A cargo configuration is held whole, since only with `dl` it is one; a longer file is none. */
#define REWRITE_WHOLE_MAX 4096
/* Room for what rewrite_finish writes. */
#define REWRITE_FINISH_ROOM (REWRITE_WHOLE_MAX + 2 * REWRITE_LINK_GROWTH + REWRITE_STEP_ROOM)

struct rewrite_output {
    char *bytes;
    size_t size, length;
};

struct rewrite {
    enum rewrite_format format;
    struct location_context context;
    uint64_t links;              /* rewritten so far */
    bool whole;                  /* `document` collects */
    char held[REWRITE_LINK_MAX]; /* the link that has not ended yet, as written */
    size_t held_length;
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

/* Takes bytes of the document as long as the output has room for a step; returns how many. */
size_t rewrite_take(struct rewrite *rewrite, struct slice in, struct rewrite_output *out);

/* The document has ended: writes what was still held. `out` has REWRITE_FINISH_ROOM. */
void rewrite_finish(struct rewrite *rewrite, struct rewrite_output *out);

/* For the formats. */

/* Passes bytes on; the caller has seen that there is room. */
void rewrite_emit(struct rewrite_output *out, const char *bytes, size_t length);

static inline size_t rewrite_room(const struct rewrite_output *out)
{
    return out->size - out->length;
}

/* Holds bytes of a link. False when it has become too long: then everything held has been passed on, these
 * bytes too, and it is no link any more. */
bool rewrite_hold(struct rewrite *rewrite, const char *bytes, size_t length,
                  struct rewrite_output *out);

/* The link has ended: writes it, rewritten or not. *origin as rewrite_link has it. */
void rewrite_release(struct rewrite *rewrite, const struct rewrite_notation *notation,
                     struct rewrite_output *out, struct upstream_url *origin);

/* What is held is no link after all. */
void rewrite_release_raw(struct rewrite *rewrite, struct rewrite_output *out);

#endif
