/* Dials the target of a connection.
 *
 * The addresses of the forward are tried in order, starting with the one that worked last. When all
 * fail, the roles whose target may still be starting (the broker, or the other relay of a pair)
 * pause with back-off and start another round, until `dial_until`. The server's forward makes one
 * round: the host takes a close without OK as "try again".
 */
#ifndef AGENT_DIAL_H
#define AGENT_DIAL_H

#include "agent/relay.h"

enum dial_outcome {
    DIAL_PENDING, /* an attempt or a pause is under way, the deadline is set */
    DIAL_REACHED, /* the target is connected, and with TLS its key is proved */
    DIAL_FAILED   /* no address is left to try: see dial_reason */
};

/* Starts the first round. */
enum dial_outcome dial_begin(struct relay *relay, struct connection *connection);

/* The socket is ready or failed. */
enum dial_outcome dial_event(struct relay *relay, struct connection *connection, uint32_t events);

/* The attempt or the pause is over. */
enum dial_outcome dial_expired(struct relay *relay, struct connection *connection);

/* Why it failed, for the client's 502. */
const char *dial_reason(const struct connection *connection);

#endif
