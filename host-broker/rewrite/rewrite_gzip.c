/* Decodes gzip by zlib, with memory from an arena. */
#include "host-broker/rewrite/rewrite_gzip.h"

#include <errno.h>
#include <stdint.h>

#define WINDOW_BITS (15 + 16) /* of inflateInit2: gzip only, windows of any size */
#define MAGIC 0x1f

static voidpf allocate(voidpf opaque, uInt count, uInt size)
{
    struct rewrite_gzip *gzip = opaque;
    size_t length = ((size_t)count * size + 15) & ~(size_t)15;
    if (length > sizeof(gzip->arena) - gzip->arena_used)
        return Z_NULL;
    void *memory = gzip->arena + gzip->arena_used;
    gzip->arena_used += length;
    return memory;
}

static void keep(voidpf opaque, voidpf memory)
{
    (void)opaque, (void)memory; /* rewrite_gzip_start reuses the arena */
}

int rewrite_gzip_start(struct rewrite_gzip *gzip)
{
    gzip->stream = (z_stream){.zalloc = allocate, .zfree = keep, .opaque = gzip};
    gzip->begun = gzip->ended = gzip->closed = gzip->more = false;
    gzip->arena_used = gzip->start = gzip->end = 0;
    return inflateInit2(&gzip->stream, WINDOW_BITS) == Z_OK ? 0 : -ENOMEM;
}

/* Bytes follow a member: begins the next one, or drops what is none. */
static int begin_next(struct rewrite_gzip *gzip, char first)
{
    gzip->ended = false;
    gzip->closed = (unsigned char)first != MAGIC;
    return gzip->closed || inflateReset(&gzip->stream) == Z_OK ? 0 : -EBADMSG;
}

ssize_t rewrite_gzip_take(struct rewrite_gzip *gzip, struct slice in)
{
    z_stream *stream = &gzip->stream;
    if (gzip->ended && in.length > 0 && begin_next(gzip, in.bytes[0]) < 0)
        return -EBADMSG;
    gzip->more = false;
    if (gzip->ended || gzip->closed)
        return (ssize_t)in.length;
    gzip->begun = gzip->begun || in.length > 0;
    stream->next_in = (Bytef *)(uintptr_t)in.bytes;
    stream->avail_in = (uInt)in.length;
    stream->next_out = (Bytef *)gzip->plain;
    stream->avail_out = sizeof(gzip->plain);
    int result = inflate(stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return -EBADMSG;
    gzip->start = 0;
    gzip->end = sizeof(gzip->plain) - stream->avail_out;
    gzip->ended = result == Z_STREAM_END;
    gzip->more = !gzip->ended && stream->avail_out == 0;
    return (ssize_t)(in.length - stream->avail_in);
}

bool rewrite_gzip_is_whole(const struct rewrite_gzip *gzip)
{
    return !gzip->begun || gzip->ended || gzip->closed;
}
