/* Finds the content of a request's body in the bytes of a connection: by length, or chunked (RFC
 * 9112 section 7.1), in pieces of any size, without copying.
 *
 * The upstream gets the body with new framing and must see the same content, so the decoder is
 * strict: a chunk size is 1 to 16 hexadecimal digits with nothing around them and at most 2^63 - 1;
 * line ends are CRLF; extensions follow the grammar (white space only after a semicolon) and are
 * dropped; trailers must be well-formed field lines and are dropped (RFC 9110 section 6.5.1 allows
 * it). Extensions and trailers are limited for the whole body, so that a body cannot consist of
 * overhead.
 */
#ifndef HOST_BROKER_HTTP_BODY_DECODER_H
#define HOST_BROKER_HTTP_BODY_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-broker/base/slice.h"

#define BODY_EXTENSIONS_MAX 16384 /* bytes of chunk extensions in one body */
#define BODY_TRAILERS_MAX 16384   /* bytes of trailers in one body */

enum body_framing {
    BODY_NONE,   /* no content: neither Content-Length nor chunked */
    BODY_LENGTH, /* Content-Length, 0 included */
    BODY_CHUNKED,
    BODY_FRAMING_COUNT
};

enum body_fault {
    BODY_FAULT_NONE,
    BODY_FAULT_CHUNK_SIZE,
    BODY_FAULT_CHUNK_EXTENSION,
    BODY_FAULT_CHUNK_END, /* no CRLF after a chunk's data */
    BODY_FAULT_TRAILER,
    BODY_FAULT_TOO_LARGE, /* extensions or trailers over their limit */
    BODY_FAULT_COUNT
};

extern const char *const body_fault_reasons[BODY_FAULT_COUNT]; /* for the message of a 400 */

struct body_decoder {
    int state;                     /* private */
    uint64_t remaining;            /* bytes of content still to come in this chunk or body */
    unsigned digits;               /* of the chunk size */
    uint32_t extensions, trailers; /* bytes so far */
    enum body_fault fault;
};

/* `length` is used for BODY_LENGTH only. An empty body is done at once. */
void body_decoder_start(struct body_decoder *decoder, enum body_framing framing, uint64_t length);

/* Takes bytes from the front of `bytes` and returns how many. *content is the part of them that is
 * content, perhaps empty. One call takes at most one run of content, so the caller repeats it while
 * bytes are taken and the body is not done. 0: more bytes are needed, or, when the body is done,
 * the bytes belong to the next request. -EBADMSG: the body is malformed, decoder->fault says how,
 * and every further call returns the same. Content returned before a fault belongs to no valid
 * body: the caller aborts the upstream's request. */
ssize_t body_decoder_take(struct body_decoder *decoder, const char *bytes, size_t length,
                          struct slice *content);

/* True when the whole body has been taken, including the last chunk and trailers. */
bool body_decoder_done(const struct body_decoder *decoder);

#endif
