/* The setters of a connection's state, used by every handler. They do no I/O except close(2) and
 * epoll_ctl(2). */
#ifndef AGENT_CONNECTION_STATE_H
#define AGENT_CONNECTION_STATE_H

#include "agent/relay.h"

/* The only setter of the state; arms nothing. `deadline` as in the struct. */
void connection_enter(struct relay *relay, struct connection *connection,
                      enum connection_state state, int64_t deadline);

/* Makes epoll watch for connection_interest on both sides. */
void connection_rearm(struct relay *relay, struct connection *connection);

/* Closes the target's socket and resets that side. */
void connection_drop_target(struct connection *connection);

/* Both mark the connection for the sweep. After a break the sweep resets each side that does not
 * have the other's whole stream. */
void connection_close(struct relay *relay, struct connection *connection);
void connection_break(struct relay *relay, struct connection *connection);

#endif
