/* Dialling: rounds over the address list, see dial.h. */
#include "agent/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/relay.h"
#include "common/cleanup.h"

static void give_up(struct relay *relay, struct connection *connection, int error)
{
    if (role_rules[connection->role].carries_requests)
        connection_apologise(relay, connection, strerror(error));
    else
        connection_close(relay, connection);
}

static void pause_or_give_up(struct relay *relay, struct connection *connection, int error)
{
    if (relay->now + connection->dial_backoff > connection->dial_until) {
        give_up(relay, connection, error);
        return;
    }
    connection_enter(relay, connection, CONNECTION_DIALLING, relay->now + connection->dial_backoff);
    connection->dial_backoff *= 2;
    if (connection->dial_backoff > DIAL_BACKOFF_MAX_MS)
        connection->dial_backoff = DIAL_BACKOFF_MAX_MS;
}

/* Starts the next attempt of this round; a socket that cannot even start counts as a failed one. */
static void try_next(struct relay *relay, struct connection *connection, int error)
{
    struct side *target = &connection->sides[SIDE_TARGET];
    const struct relay_forward *forward = &relay->config.forwards[connection->forward];
    fd_close(&target->fd);
    target->armed = 0;
    while (connection->dial_left > 0) {
        connection->dial_left--;
        connection->dial_index++;
        const struct endpoint *address =
            &forward->dials[connection->dial_index % forward->dial_count];
        int fd = endpoint_dial(address);
        if (fd >= 0) {
            int on = 1; /* small pieces of a stream must not wait; no meaning but for TCP */
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            target->fd = fd;
            connection_enter(relay, connection, CONNECTION_DIALLING, relay->now + DIAL_ATTEMPT_MS);
            return;
        }
        error = -fd;
    }
    pause_or_give_up(relay, connection, error);
}

static void start_round(struct relay *relay, struct connection *connection)
{
    connection->dial_left = relay->config.forwards[connection->forward].dial_count;
    connection->dial_index =
        relay->preferred[connection->forward] - 1; /* unsigned: wraps both ways */
    try_next(relay, connection, ETIMEDOUT);
}

void dial_begin(struct relay *relay, struct connection *connection)
{
    connection->dial_until = relay->now + role_rules[connection->role].dial_window;
    connection->dial_backoff = DIAL_BACKOFF_MS;
    start_round(relay, connection);
}

void dial_event(struct relay *relay, struct connection *connection)
{
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(connection->sides[SIDE_TARGET].fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    if (error != 0) {
        try_next(relay, connection, error);
        return;
    }
    relay->preferred[connection->forward] = connection->dial_index;
    connection_join(relay, connection);
}

void dial_expired(struct relay *relay, struct connection *connection)
{
    if (connection->sides[SIDE_TARGET].fd < 0)
        start_round(relay, connection);
    else
        try_next(relay, connection, ETIMEDOUT);
}
