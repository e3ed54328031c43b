/* Changes of a connection's state, with the counters and lists of the relay that depend on it. */
#include "agent/connection_state.h"

#include "agent/event_set.h"
#include "agent/tls.h"
#include "common/os/cleanup.h"

void connection_enter(struct relay *relay, struct connection *connection,
                      enum connection_state state, int64_t deadline)
{
    if (connection->state == CONNECTION_DEMANDING)
        relay->demanding--;
    if (state == CONNECTION_DEMANDING)
        relay->demanding++;
    connection->state = state;
    relay_set_deadline(relay, connection, deadline);
}

void connection_rearm(struct relay *relay, struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSING)
        return; /* the sweep closes the descriptors, which removes them from the set */
    for (unsigned which = 0; which < 2; which++) {
        struct side *side = &connection->sides[which];
        uint32_t interest = connection_interest(connection, which);
        if (side->fd >= 0 && interest != side->armed)
            event_set_watch(relay->epoll, side->fd, &side->armed, interest,
                            REFERENCE(REFERENCE_SIDE, 2 * connection->index + which));
    }
}

void connection_close(struct relay *relay, struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSING)
        return;
    connection_enter(relay, connection, CONNECTION_CLOSING, NEVER);
    connection->next = relay->marked;
    relay->marked = connection->index;
}

void connection_break(struct relay *relay, struct connection *connection)
{
    connection->reset = true;
    connection_close(relay, connection);
}

void connection_drop_target(struct connection *connection)
{
    tls_finish(connection);
    fd_close(&connection->sides[SIDE_TARGET].fd);
    connection->sides[SIDE_TARGET] = (struct side){.fd = -1};
}
