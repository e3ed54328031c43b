/* Finds the content of a request's body in the bytes of a connection: by length, or chunked (RFC 9112
 * section 7.1), in pieces of any size, without copying.
 *
 * Strict, since the upstream gets the body framed anew and must see the same one: a chunk size is 1 to
 * 16 hexadecimal digits with nothing around them and at most 2^63 - 1, line ends are CRLF, extensions
 * follow the grammar (white space only behind a semicolon) and are dropped, trailers must be well-formed
 * field lines and are dropped (RFC 9110 section 6.5.1 allows it). Extensions and trailers have a limit
 * for the whole body, so that a body cannot be all overhead.
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
    BODY_FAULT_CHUNK_END, /* no CRLF behind a chunk's data */
    BODY_FAULT_TRAILER,
    BODY_FAULT_TOO_LARGE, /* extensions or trailers over their limit */
    BODY_FAULT_COUNT
};

extern const char *const body_fault_reasons[BODY_FAULT_COUNT]; /* words for a 400 */

struct body_decoder {
    int state;                     /* private */
    uint64_t remaining;            /* bytes of content still to come in this chunk or body */
    unsigned digits;               /* of the chunk size */
    uint32_t extensions, trailers; /* bytes so far */
    enum body_fault fault;
};

/* `length` counts for BODY_LENGTH only. A body of no bytes is done at once. */
void body_decoder_start(struct body_decoder *decoder, enum body_framing framing, uint64_t length);

/* Takes bytes from the front of `bytes` and returns how many; *content is the part of these that is
 * content, possibly empty. Goes on to the end of one stretch of content at most, so call it again while
 * it takes anything and the body is not done; 0 means that more bytes are needed (or, when done, that
 * what follows belongs to the next request). -EBADMSG: malformed, decoder->fault says how, and every
 * further call says the same. Content handed out before a fault is no part of a valid body: the caller
 * breaks off the upstream's request. */
ssize_t body_decoder_take(struct body_decoder *decoder, const char *bytes, size_t length,
                          struct slice *content);

/* True when the whole body, last chunk and trailers included, has been taken. */
bool body_decoder_done(const struct body_decoder *decoder);

#endif
