/* Reaches the target of a connection, in rounds over the list of addresses. */
#include "agent/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/connection_state.h"
#include "agent/tls.h"
#include "common/net/tls_link.h"

const char *dial_reason(const struct connection *connection)
{
    switch (connection->dial_error) {
    case EKEYREJECTED:
        return "the broker's key does not match the pin";
    case EPROTO:
        return "the peer does not speak the broker's TLS";
    }
    return strerror(connection->dial_error);
}

/* A wrong key is a better reason than an address that does not answer. */
static void remember(struct connection *connection, int error)
{
    if (connection->dial_error != EKEYREJECTED)
        connection->dial_error = error;
}

static enum dial_outcome pause_or_give_up(struct relay *relay, struct connection *connection)
{
    if (relay->now + connection->dial_backoff > connection->dial_until)
        return DIAL_FAILED;
    connection_enter(relay, connection, CONNECTION_DIALLING, relay->now + connection->dial_backoff);
    connection->dial_backoff *= 2;
    if (connection->dial_backoff > DIAL_BACKOFF_MAX_MS)
        connection->dial_backoff = DIAL_BACKOFF_MAX_MS;
    return DIAL_PENDING;
}

static const struct endpoint *address_of(const struct relay *relay,
                                         const struct connection *connection)
{
    const struct relay_forward *forward = &relay->config.forwards[connection->forward];
    return &forward->dials[connection->dial_index % forward->dial_count];
}

static enum dial_outcome target_reached(struct relay *relay, struct connection *connection)
{
    relay->preferred[connection->forward] = connection->dial_index;
    return DIAL_REACHED;
}

/* connect(2) on a Unix socket succeeds or fails at once (unix_stream_connect in
 * net/unix/af_unix.c), so there is nothing to wait for. */
static enum dial_outcome attempt_started(struct relay *relay, struct connection *connection,
                                         enum endpoint_kind kind, int fd)
{
    connection->sides[SIDE_TARGET].fd = fd;
    if (kind == ENDPOINT_UNIX)
        return target_reached(relay, connection);
    connection_enter(relay, connection, CONNECTION_DIALLING, relay->now + DIAL_ATTEMPT_MS);
    return DIAL_PENDING;
}

/* Starts the next attempt of this round. An address whose connect(2) fails at once counts as
 * failed. */
static enum dial_outcome try_next(struct relay *relay, struct connection *connection)
{
    connection_drop_target(connection);
    while (connection->dial_left > 0) {
        connection->dial_left--;
        connection->dial_index++;
        const struct endpoint *address = address_of(relay, connection);
        int fd = endpoint_dial_by(address, relay->config.route_fd);
        if (fd >= 0) {
            int on = 1; /* small writes are sent at once */
            if (endpoint_is_tcp(address))
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            return attempt_started(relay, connection, address->kind, fd);
        }
        remember(connection, -fd);
    }
    return pause_or_give_up(relay, connection);
}

static enum dial_outcome attempt_failed(struct relay *relay, struct connection *connection,
                                        int error)
{
    remember(connection, error);
    return try_next(relay, connection);
}

static enum dial_outcome start_round(struct relay *relay, struct connection *connection)
{
    connection->dial_left = relay->config.forwards[connection->forward].dial_count;
    connection->dial_index =
        relay->preferred[connection->forward] - 1; /* unsigned: wraps both ways */
    connection->dial_error = ETIMEDOUT;
    return try_next(relay, connection);
}

enum dial_outcome dial_begin(struct relay *relay, struct connection *connection)
{
    connection->dial_until = relay->now + role_rules[connection->role].dial_window;
    connection->dial_backoff = DIAL_BACKOFF_MS;
    return start_round(relay, connection);
}

static enum dial_outcome shake_hands(struct relay *relay, struct connection *connection)
{
    struct side *target = &connection->sides[SIDE_TARGET];
    int result = tls_link_handshake(connection->tls, target->fd);
    target->unsent = tls_link_unsent(connection->tls);
    if (result < 0)
        return attempt_failed(relay, connection, -result);
    return result > 0 ? target_reached(relay, connection) : DIAL_PENDING;
}

static enum dial_outcome connected(struct relay *relay, struct connection *connection)
{
    const struct relay_forward *forward = &relay->config.forwards[connection->forward];
    if (!tls_is_wanted(forward, address_of(relay, connection)))
        return target_reached(relay, connection);
    tls_begin(connection, forward);
    connection_enter(relay, connection, CONNECTION_SECURING, relay->now + HANDSHAKE_MS);
    return shake_hands(relay, connection);
}

enum dial_outcome dial_event(struct relay *relay, struct connection *connection, uint32_t events)
{
    int error = 0;
    socklen_t length = sizeof(error);
    if (connection->state == CONNECTION_SECURING)
        return shake_hands(relay, connection);
    /* a failed connect(2) is reported by these events; without them there is no error to read */
    if ((events & (EPOLLERR | EPOLLHUP)) &&
        getsockopt(connection->sides[SIDE_TARGET].fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    return error != 0 ? attempt_failed(relay, connection, error) : connected(relay, connection);
}

enum dial_outcome dial_expired(struct relay *relay, struct connection *connection)
{
    if (connection->sides[SIDE_TARGET].fd < 0)
        return start_round(relay, connection);
    return attempt_failed(relay, connection, ETIMEDOUT);
}
