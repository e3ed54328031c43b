/* Inside request_head: the walk over a head's bytes (see request_head.h for what it refuses). */
#ifndef HOST_BROKER_HTTP_REQUEST_INTERNAL_H
#define HOST_BROKER_HTTP_REQUEST_INTERNAL_H

#include "host-broker/http/request_head.h"

/* Goes on behind scan->position. 1: the head ends at scan->position; 0: more bytes are needed; -1: *fault.
 * After 1, the bytes from scan->start on are a request line, field lines and an empty line, each with
 * CRLF, and hold no other CR or LF. */
int request_scan_bytes(struct request_scan *scan, const char *bytes, size_t length,
                       enum request_fault *fault);

#endif
