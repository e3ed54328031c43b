/* A connection's descriptor: reading, sending, and what epoll watches. For connection.c only. */
#ifndef HOST_BROKER_CONNECTION_IO_H
#define HOST_BROKER_CONNECTION_IO_H

#include "host-broker/connection.h"

/* Watches what the state calls for. 0 or a negative errno. Returns blocks that are not needed now. */
int connection_io_arm(struct connection *connection);

/* Makes the close that follows a reset where the transport knows one: an answer of HTTP/1.0 that broke
 * off has no other sign of it. */
void connection_io_break(struct connection *connection);

void connection_io_close(struct connection *connection);

#endif
