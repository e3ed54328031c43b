/* The two HTTP answers that the relay itself sends, only on the forward to the broker. The relay
 * sends them without having read the request, and then closes the connection. */
#ifndef AGENT_CANNED_H
#define AGENT_CANNED_H

#include <stddef.h>

#define CANNED_MAX 1024

/* Writes a 502 of the type codev_broker_unreachable, with `reason` in its message. Returns the
 * length; there is no final NUL. */
size_t canned_unreachable(char out[CANNED_MAX], const char *reason);

/* Writes a 503 of the type codev_relay_full, with Retry-After. Returns the length. */
size_t canned_full(char out[CANNED_MAX]);

#endif
