/* An HTTP/1.1 answer as it arrives: a head, then a body by length, in chunks, or up to the end.
 *
 * A tool for tests: it trusts the broker's framing and checks only that the answer is complete.
 */
#ifndef QEMU_HARNESS_PROBE_HTTP_ANSWER_H
#define QEMU_HARNESS_PROBE_HTTP_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#define ANSWER_HEAD_MAX (64 * 1024)

enum answer_state {
    ANSWER_HEAD,       /* the head is being collected */
    ANSWER_LENGTH,     /* `left` bytes of body are missing */
    ANSWER_CHUNK_SIZE, /* a line with a chunk's size */
    ANSWER_CHUNK_DATA, /* `left` bytes of the chunk are missing */
    ANSWER_CHUNK_END,  /* the line end behind a chunk */
    ANSWER_TRAILER,    /* lines behind the last chunk, up to an empty one */
    ANSWER_TO_END,     /* the body ends with the connection */
    ANSWER_COMPLETE,
    ANSWER_BAD,
};

struct answer {
    enum answer_state state;
    int no_body; /* the request was a HEAD */
    int status;
    uint64_t left;
    uint64_t body_bytes;
    size_t head_length, line_length; /* line_length: of the current line in the chunked frame */
    char head[ANSWER_HEAD_MAX + 1];
    void (*on_head)(void *context, const char *head, size_t length);
    void (*on_body)(void *context, const void *bytes, size_t length);
    void *context;
};

/* Takes bytes and calls on_head and on_body for what they complete. */
void answer_feed(struct answer *answer, const char *bytes, size_t length);

/* The connection ended: a body without a length is complete by that, anything else is not. */
void answer_end(struct answer *answer);

#endif
