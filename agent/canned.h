/* The two answers that the relay gives itself, on the broker's forward only. It has not read the
 * request: whatever was asked, the connection ends with one of these. */
#ifndef AGENT_CANNED_H
#define AGENT_CANNED_H

#include <stddef.h>

#define CANNED_MAX 1024

/* 502, type codev_broker_unreachable. Returns the length (no NUL). */
size_t canned_unreachable(char out[CANNED_MAX], const char *reason);

/* 503, type codev_relay_full, Retry-After. */
size_t canned_full(char out[CANNED_MAX]);

#endif
