/* Field lines and their characters (RFC 9110 section 5): used for the request's head, its trailers,
 * and the upstream's answer.
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

bool field_is_token(struct slice text); /* one token byte or more, and nothing else */

/* Bytes of a value: HTAB, SP, visible ASCII and bytes from 0x80 (obs-text). */
static inline bool field_is_value_byte(unsigned char byte)
{
    return (field_byte_classes[byte] & FIELD_CLASS_VALUE) != 0;
}

/* The text without SP and HTAB at both ends. */
struct slice field_trim(struct slice text);

/* Takes the next element of a comma-separated list (RFC 9110 section 5.6.1) off the front of *rest,
 * and stores it trimmed. Empty elements are skipped. False at the end. Quoted strings are not
 * supported: for lists of tokens only (Connection, Upgrade). */
bool field_list_next(struct slice *rest, struct slice *element);

/* True when an element equals `token`, without regard to case. */
bool field_list_has(struct slice list, struct slice token);

/* Splits one line of an upstream's answer, "Name: value" with or without CRLF, as libcurl's header
 * callback delivers it. 0, or -EINVAL when there is no token directly before a colon or the value
 * has a control byte; the caller then drops the line. Slices point into `line`. */
int field_parse_line(struct slice line, struct field *out);

#endif
