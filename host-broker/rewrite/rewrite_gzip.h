/* Decodes a document that an upstream compressed though it was asked not to (RFC 1952, through zlib): else
 * its links could not be seen, and clients would fail on upstreams that keep only compressed files.
 *
 * A bounded piece at a time: the decoded bytes wait in `plain` until somebody takes them, so back-pressure
 * works as for any document. zlib's memory is the arena here; nothing is allocated. Several members
 * one behind the other are one document; what follows the last and is no member is dropped, as by browsers.
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
    bool begun;  /* a byte has come */
    bool ended;  /* a member has ended, and no other has begun */
    bool closed; /* what follows is dropped */
    bool more;   /* there may be more in zlib, even without further input */
    size_t arena_used;
    char plain[REWRITE_GZIP_PLAIN];
    size_t start, end; /* decoded bytes that wait are [start, end) */
    alignas(16) char arena[REWRITE_GZIP_ARENA];
};

/* Begins a document. 0 or -ENOMEM. */
int rewrite_gzip_start(struct rewrite_gzip *gzip);

/* To be called when nothing waits in `plain`: decodes into it. Returns how many bytes of `in` were taken
 * (0 may be, while `more` is set), or -EBADMSG. */
ssize_t rewrite_gzip_take(struct rewrite_gzip *gzip, struct slice in);

/* True when the document may end here: behind a whole member, or without a byte. */
bool rewrite_gzip_is_whole(const struct rewrite_gzip *gzip);

#endif
