/* Bytes of a document on their way through: passed on, or held as a link. */
#include "host-broker/rewrite/rewrite_stream_internal.h"

void rewrite_emit(struct rewrite_output *out, const char *bytes, size_t length)
{
    if (length > 0)
        memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
}

void rewrite_release_raw(struct rewrite_stream *stream, struct rewrite_output *out)
{
    rewrite_emit(out, stream->held, stream->held_length);
    stream->held_length = 0;
}

bool rewrite_hold(struct rewrite_stream *stream, const char *bytes, size_t length,
                  struct rewrite_output *out)
{
    if (length > sizeof(stream->held) - stream->held_length) {
        rewrite_release_raw(stream, out);
        rewrite_emit(out, bytes, length);
        return false;
    }
    memcpy(stream->held + stream->held_length, bytes, length);
    stream->held_length += length;
    return true;
}

void rewrite_release(struct rewrite_stream *stream, const struct rewrite_notation *notation,
                     struct rewrite_output *out, struct upstream_url *origin)
{
    struct slice raw = {stream->held, stream->held_length};
    size_t length = rewrite_link(out->bytes + out->length, rewrite_room(out), raw, notation,
                                 &stream->context, origin);
    if (length == 0) {
        rewrite_release_raw(stream, out);
        return;
    }
    out->length += length;
    stream->held_length = 0;
    stream->links++;
}
