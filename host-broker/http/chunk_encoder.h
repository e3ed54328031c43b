/* Writes the framing of chunks (RFC 9112 section 7.1) around an answer's content, which itself is
 * not copied.
 */
#ifndef HOST_BROKER_HTTP_CHUNK_ENCODER_H
#define HOST_BROKER_HTTP_CHUNK_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "host-broker/http/field.h"

#define CHUNK_HEAD_MAX 18      /* 16 digits and CRLF */
#define CHUNK_TAIL "\r\n"      /* after the content of each chunk */
#define CHUNK_LAST "0\r\n\r\n" /* ends a body without trailers */

/* Writes the size line for `length` bytes of content, without a NUL. Returns the number of
 * characters. `length` must not be 0, because an empty chunk ends the body. */
size_t chunk_head_write(char out[CHUNK_HEAD_MAX], uint64_t length);

/* Writes the end of a body with `count` trailers (perhaps 0). Returns the length, or -ENOSPC. */
int chunk_last_write(char *out, size_t size, const struct field *trailers, size_t count);

#endif
