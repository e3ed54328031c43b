/* What the readers of JSON and HTML do with the bytes of a document: they pass them on, or hold
 * them as a link until its end is known.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_STREAM_INTERNAL_H
#define HOST_BROKER_REWRITE_REWRITE_STREAM_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "host-broker/rewrite/rewrite_link_internal.h"

/* Free space that `out` must have before a reader takes one more step: a whole link, rewritten. */
#define REWRITE_STEP_ROOM (REWRITE_LINK_MAX + REWRITE_LINK_GROWTH)

struct rewrite_output {
    char *bytes;
    size_t size, length;
};

struct rewrite_stream {
    struct location_context context; /* `path` is not used */
    uint64_t links;                  /* rewritten so far */
    char held[REWRITE_LINK_MAX];     /* the link whose end has not come yet, as written */
    size_t held_length;
};

static inline size_t rewrite_room(const struct rewrite_output *out)
{
    return out->size - out->length;
}

/* Passes bytes on. The caller has checked that there is room. */
void rewrite_emit(struct rewrite_output *out, const char *bytes, size_t length);

/* Holds further bytes of a link. False when the link has become too long: then everything held and
 * these bytes have been passed on, and the rest is no link. */
bool rewrite_hold(struct rewrite_stream *stream, const char *bytes, size_t length,
                  struct rewrite_output *out);

/* The link has ended: passes it on, rewritten if rewrite_link does so. *origin as in
 * rewrite_link. */
void rewrite_release(struct rewrite_stream *stream, const struct rewrite_notation *notation,
                     struct rewrite_output *out, struct upstream_url *origin);

/* Passes on what is held, unchanged. */
void rewrite_release_raw(struct rewrite_stream *stream, struct rewrite_output *out);

#endif
