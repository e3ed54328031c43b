/* Writes the head of an answer to the guest: status line, fields, and framing made anew.
 *
 * Framing fields of the upstream are never copied (header_policy drops them); what ends the body is
 * decided here from facts: the request's method and version, the status, and whether the length is
 * known. The reason phrase comes from our own table, so no byte of the upstream's status line is
 * repeated.
 */
#ifndef HOST_BROKER_HTTP_RESPONSE_HEAD_H
#define HOST_BROKER_HTTP_RESPONSE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-broker/base/slice.h"

#define RESPONSE_HEAD_MAX                                                                          \
    (128 * 1024) /* room for an upstream's head of 64 KiB with grown Locations */

/* How the end of an answer is known (RFC 9112 section 6.3). */
enum response_framing {
    RESPONSE_EMPTY,   /* 1xx, 204: no content and no field about it */
    RESPONSE_HEADERS, /* HEAD, 304: no content; Content-Length only tells what there would be */
    RESPONSE_LENGTH,
    RESPONSE_CHUNKED,
    RESPONSE_CLOSE, /* HTTP/1.0 and unknown length: the end of the connection */
    RESPONSE_FRAMING_COUNT
};

struct response_facts {
    bool head_request;
    int request_minor_version;
    int status;
    bool length_known;
    uint64_t length; /* with length_known */
    bool keep_alive; /* wanted; RESPONSE_CLOSE overrules it */
};

enum response_framing response_framing_choose(const struct response_facts *facts);

/* True when the connection stays open behind this answer. */
bool response_keeps_alive(const struct response_facts *facts);

struct response_head {
    char *buffer;
    size_t size, length;
    bool overflow; /* sticky */
};

/* "Created" and the like, "" for a status that is not in the registry. */
const char *response_reason(int status);

/* Begins with "HTTP/1.1 STATUS REASON". Status 100 to 999. */
void response_head_begin(struct response_head *head, char *buffer, size_t size, int status);

/* Name and value must be valid (field_parse_line, or our own constants): CR, LF or NUL in them makes
 * the head overflow rather than split. */
void response_head_field(struct response_head *head, struct slice name, struct slice value);

/* Adds lines of our own, each with its CRLF. */
void response_head_lines(struct response_head *head, const char *lines);

/* Adds Content-Length, Transfer-Encoding and Connection as `facts` demand, and the empty line. Returns
 * the length of the head, or -ENOSPC when it did not fit. */
int response_head_finish(struct response_head *head, const struct response_facts *facts);

/* What is sent before a body that the client holds back (Expect: 100-continue). */
#define RESPONSE_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

#endif
