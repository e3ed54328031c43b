/* Moves bytes between a connection's sockets and its rings, through TLS when the target has it.
 *
 * A TLS record is read from the socket only when the ring has room for all of it, so no plain byte
 * waits in the engine, where no event would report it. In the other direction one record may wait
 * for the socket: the side is `unsent` meanwhile.
 */
#ifndef AGENT_TRANSFER_H
#define AGENT_TRANSFER_H

#include "agent/connection.h"

/* Sends the bytes that are pending for a side. When the side takes no more, its own stream has not
 * ended: bytes that it sent before may still wait to be read. */
void transfer_to(struct connection *connection, enum connection_side which, int64_t now);

/* Reads once from a side and sends the bytes to the other. */
void transfer_from(struct connection *connection, enum connection_side which, int64_t now);

#endif
