/* A connection's descriptor: reading, sending, and what is watched. For connection.c only. */
#ifndef HOST_BROKER_SERVE_CONNECTION_INTERNAL_H
#define HOST_BROKER_SERVE_CONNECTION_INTERNAL_H

#include "host-broker/serve/connection.h"

/* Watches what the state calls for. 0 or a negative errno. Returns blocks that are not needed now. */
int connection_io_arm(struct connection *connection);

/* Takes what the TLS session holds back, when there is room and it is wanted: no event would tell of it.
 * True when something came. */
bool connection_io_refill(struct connection *connection);

/* True while anything of ours waits to be sent. */
bool connection_io_unsent(const struct connection *connection);

/* Ends our sending, over TLS with close_notify first. False while that waits to be sent. */
bool connection_io_end(struct connection *connection);

/* Makes the close that follows a reset where the transport knows one: an answer of HTTP/1.0 that broke
 * off has no other sign of it. */
void connection_io_break(struct connection *connection);

void connection_io_close(struct connection *connection);

#endif
