/* Writes the head of an answer to the guest: status line, fields, and new framing.
 *
 * The upstream's framing fields are never copied (header_policy drops them). How the body ends is
 * decided here, by the request's method and version, the status, and whether the length is known.
 * The reason phrase comes from a table, so no byte of the upstream's status line is copied.
 */
#ifndef HOST_BROKER_HTTP_RESPONSE_HEAD_H
#define HOST_BROKER_HTTP_RESPONSE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-broker/base/slice.h"

/* Room for an upstream's head of 64 KiB whose Location and Link fields have grown. */
#define RESPONSE_HEAD_MAX (128 * 1024)

/* How an answer ends (RFC 9112 section 6.3). */
enum response_framing {
    RESPONSE_EMPTY,   /* 1xx, 204: no content, no Content-Length */
    RESPONSE_HEADERS, /* HEAD, 304: no content; Content-Length is that of the content left out */
    RESPONSE_LENGTH,
    RESPONSE_CHUNKED,
    RESPONSE_CLOSE, /* HTTP/1.0 and unknown length: ends with the connection */
    RESPONSE_FRAMING_COUNT
};

struct response_facts {
    bool head_request;
    int request_minor_version;
    int status;
    bool length_known;
    uint64_t length; /* with length_known */
    bool keep_alive; /* wanted; impossible with RESPONSE_CLOSE */
};

enum response_framing response_framing_choose(const struct response_facts *facts);

/* True when the connection stays open after this answer. */
bool response_keeps_alive(const struct response_facts *facts);

struct response_head {
    char *buffer;
    size_t size, length;
    bool overflow; /* sticky */
};

/* The reason phrase, "" for a status that is not in the registry. */
const char *response_reason(int status);

/* Writes "HTTP/1.1 STATUS REASON" and CRLF. Status 100 to 999. */
void response_head_begin(struct response_head *head, char *buffer, size_t size, int status);

/* Writes a field. Name and value must be valid (from field_parse_line, or constants): CR, LF or NUL
 * in them sets `overflow`, so that they cannot begin another line. */
void response_head_field(struct response_head *head, struct slice name, struct slice value);

/* Writes constant lines, each with its CRLF. */
void response_head_lines(struct response_head *head, const char *lines);

/* Writes Content-Length, Transfer-Encoding and Connection as `facts` require, and the empty line.
 * Returns the length of the head, or -ENOSPC. */
int response_head_finish(struct response_head *head, const struct response_facts *facts);

/* Asks the client for a body that it has not sent yet (Expect: 100-continue). */
#define RESPONSE_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

#endif
