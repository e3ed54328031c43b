/* Field lines and the characters they are made of (RFC 9110 section 5), shared by the request's head,
 * its trailers, and the upstream's answer.
 */
#ifndef HOST_BROKER_HTTP_FIELD_H
#define HOST_BROKER_HTTP_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-broker/base/slice.h"

struct field {
    struct slice name, value;
};

#define FIELD_CLASS_TOKEN 1u
#define FIELD_CLASS_VALUE 2u
extern const uint8_t field_byte_classes[256];

/* tchar of RFC 9110 section 5.6.2: letters, digits and !#$%&'*+-.^_`|~ */
static inline bool field_is_token_byte(unsigned char byte)
{
    return (field_byte_classes[byte] & FIELD_CLASS_TOKEN) != 0;
}

bool field_is_token(struct slice text); /* at least one of them */

/* What may stand in a value: HTAB, SP, visible ASCII and bytes from 0x80 (obs-text). */
static inline bool field_is_value_byte(unsigned char byte)
{
    return (field_byte_classes[byte] & FIELD_CLASS_VALUE) != 0;
}

/* Without SP and HTAB at both ends. */
struct slice field_trim(struct slice text);

/* Walks a comma-separated list (RFC 9110 section 5.6.1): *rest is cut from the front, the trimmed
 * element is stored, empty ones are skipped. False at the end. Quoted strings are not understood: for
 * lists of tokens (Connection, Upgrade) only. */
bool field_list_next(struct slice *rest, struct slice *element);

/* True when one of the elements equals `token`, case aside. */
bool field_list_has(struct slice list, struct slice token);

/* Splits one line of an upstream's answer, "Name: value" with or without its CRLF, as libcurl's header
 * callback delivers it. 0, or -EINVAL when the name is no token directly before a colon or the value
 * holds a control byte (then the line is not passed on). Slices point into `line`. */
int field_parse_line(struct slice line, struct field *out);

#endif
