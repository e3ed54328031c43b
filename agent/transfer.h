/* Bytes between a connection's sockets and its rings, through TLS where the target has it.
 *
 * A record of TLS is taken from the socket only when the ring has room for all of it, so no plain
 * byte ever waits in the engine, where no event would tell of it. In the other direction one record
 * may wait for the socket: the side is `unsent` meanwhile.
 */
#ifndef AGENT_TRANSFER_H
#define AGENT_TRANSFER_H

#include "agent/connection.h"

/* Sends what is pending for a side. Its refusal to take more is no end yet: what it sent before may
 * still wait to be read. */
void transfer_to(struct connection *connection, enum connection_side which, int64_t now);

/* Reads once from a side and hands the bytes on. */
void transfer_from(struct connection *connection, enum connection_side which, int64_t now);

#endif
