/* What happens to a connection: its start, the events of its sockets, its deadline. */
#ifndef AGENT_CONNECTION_EVENTS_H
#define AGENT_CONNECTION_EVENTS_H

#include "agent/relay.h"

/* Starts a connection for an accepted socket in a free slot. */
void connection_open(struct relay *relay, struct connection *connection, unsigned forward, int fd);

/* The table is full: sends the canned 503, in an overflow slot. */
void connection_refuse(struct relay *relay, struct connection *connection, unsigned forward,
                       int fd);

/* Dials again from the start, after the table of forwards changed. */
void connection_redial(struct relay *relay, struct connection *connection);

/* Handles one event of one side. */
void connection_event(struct relay *relay, struct connection *connection,
                      enum connection_side which, uint32_t events);

/* Handles the end of the deadline. */
void connection_expired(struct relay *relay, struct connection *connection);

#endif
