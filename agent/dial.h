/* Reaching the target of a connection.
 *
 * The addresses of the forward are tried in order, from the one that worked last. When all have
 * failed, the roles whose target may still be starting (the broker's, and the other agent of a
 * pair) pause with back-off and go round again until their time is up. The server's forward does
 * not: the host takes a close instead of OK as "try again".
 */
#ifndef AGENT_DIAL_H
#define AGENT_DIAL_H

#include <stdint.h>

struct relay;
struct connection;

void dial_begin(struct relay *relay, struct connection *connection);
void dial_event(struct relay *relay, struct connection *connection,
                uint32_t events); /* the socket is ready or failed */
void dial_expired(struct relay *relay,
                  struct connection *connection); /* attempt or pause is over */

#endif
