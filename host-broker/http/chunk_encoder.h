/* Frames an answer's content as chunks (RFC 9112 section 7.1): what stands before, behind and after
 * them, so that the content itself need not be copied (writev).
 */
#ifndef HOST_BROKER_HTTP_CHUNK_ENCODER_H
#define HOST_BROKER_HTTP_CHUNK_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "host-broker/http/field.h"

#define CHUNK_HEAD_MAX 18      /* 16 digits and CRLF */
#define CHUNK_TAIL "\r\n"      /* behind the content of each chunk */
#define CHUNK_LAST "0\r\n\r\n" /* ends a body without trailers */

/* Writes size and CRLF for `length` bytes of content, no NUL; returns the number of characters. The
 * length must not be 0: an empty chunk would end the body. */
size_t chunk_head_write(char out[CHUNK_HEAD_MAX], uint64_t length);

/* The end of a body with trailers (`count` may be 0). Returns the length, or -ENOSPC. */
int chunk_last_write(char *out, size_t size, const struct field *trailers, size_t count);

#endif
