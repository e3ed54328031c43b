/* Decodes documents that an upstream compressed with gzip (RFC 1952) although it was asked not to.
 * Some upstreams keep compressed files only, and without decoding their links could not be
 * rewritten.
 *
 * The document is decoded in bounded pieces: the decoded bytes stay in `plain` until the caller
 * takes them, so back-pressure works as for any document. zlib works in the arena here and nothing
 * is allocated. Consecutive members are one document. Bytes after the last member that do not begin
 * another are dropped, as browsers do.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_GZIP_H
#define HOST_BROKER_REWRITE_REWRITE_GZIP_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <zlib.h>

#include "host-broker/base/slice.h"

#define REWRITE_GZIP_ARENA (48 * 1024) /* zlib 1.2.13 takes 39 KiB: state and a window of 32 KiB */
#define REWRITE_GZIP_PLAIN (8 * 1024)

struct rewrite_gzip {
    z_stream stream;
    bool begun;  /* the first byte has come */
    bool ended;  /* a member has ended, and no other has begun */
    bool closed; /* the rest of the input is dropped */
    bool more;   /* zlib may have more output without further input */
    size_t arena_used;
    char plain[REWRITE_GZIP_PLAIN];
    size_t start, end; /* decoded bytes to take: [start, end) */
    alignas(16) char arena[REWRITE_GZIP_ARENA];
};

/* Begins a document. 0 or -ENOMEM. */
int rewrite_gzip_start(struct rewrite_gzip *gzip);

/* Decodes into `plain`, which must be empty. Returns how many bytes of `in` were taken (perhaps 0
 * while `more` is set), or -EBADMSG. */
ssize_t rewrite_gzip_take(struct rewrite_gzip *gzip, struct slice in);

/* True when the document may end here: after a complete member, or before the first byte. */
bool rewrite_gzip_is_whole(const struct rewrite_gzip *gzip);

#endif
