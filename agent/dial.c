/* Dialling: rounds over the address list, see dial.h. */
#include "agent/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/relay.h"
#include "agent/tls.h"
#include "common/net/tls_link.h"

/* What a client reads in its 502. */
static const char *reason_of(int error)
{
    switch (error) {
    case EKEYREJECTED:
        return "what answers there has another key than the pinned one";
    case EPROTO:
        return "what answers there does not speak its TLS";
    }
    return strerror(error);
}

/* A wrong key says more than an address where nobody answers. */
static void remember(struct connection *connection, int error)
{
    if (connection->dial_error != EKEYREJECTED)
        connection->dial_error = error;
}

static void give_up(struct relay *relay, struct connection *connection)
{
    if (role_rules[connection->role].carries_requests)
        connection_apologise(relay, connection, reason_of(connection->dial_error));
    else
        connection_close(relay, connection);
}

static void pause_or_give_up(struct relay *relay, struct connection *connection)
{
    if (relay->now + connection->dial_backoff > connection->dial_until) {
        give_up(relay, connection);
        return;
    }
    connection_enter(relay, connection, CONNECTION_DIALLING, relay->now + connection->dial_backoff);
    connection->dial_backoff *= 2;
    if (connection->dial_backoff > DIAL_BACKOFF_MAX_MS)
        connection->dial_backoff = DIAL_BACKOFF_MAX_MS;
}

static const struct endpoint *address_of(const struct relay *relay,
                                         const struct connection *connection)
{
    const struct relay_forward *forward = &relay->config.forwards[connection->forward];
    return &forward->dials[connection->dial_index % forward->dial_count];
}

static void target_reached(struct relay *relay, struct connection *connection)
{
    relay->preferred[connection->forward] = connection->dial_index;
    connection_join(relay, connection);
}

/* A Unix socket is connected at once or not at all (unix_stream_connect in net/unix/af_unix.c):
 * there is nothing to wait for, and the target can be watched for its bytes from the start. */
static void attempt_started(struct relay *relay, struct connection *connection,
                            enum endpoint_kind kind, int fd)
{
    connection->sides[SIDE_TARGET].fd = fd;
    if (kind == ENDPOINT_UNIX)
        target_reached(relay, connection);
    else
        connection_enter(relay, connection, CONNECTION_DIALLING, relay->now + DIAL_ATTEMPT_MS);
}

/* Starts the next attempt of this round; a socket that cannot even start counts as a failed one. */
static void try_next(struct relay *relay, struct connection *connection)
{
    connection_drop_target(connection);
    while (connection->dial_left > 0) {
        connection->dial_left--;
        connection->dial_index++;
        const struct endpoint *address = address_of(relay, connection);
        int fd = endpoint_dial_by(address, relay->config.route_fd);
        if (fd >= 0) {
            int on = 1; /* small pieces of a stream must not wait */
            if (endpoint_is_tcp(address))
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            attempt_started(relay, connection, address->kind, fd);
            return;
        }
        remember(connection, -fd);
    }
    pause_or_give_up(relay, connection);
}

static void attempt_failed(struct relay *relay, struct connection *connection, int error)
{
    remember(connection, error);
    try_next(relay, connection);
}

static void start_round(struct relay *relay, struct connection *connection)
{
    connection->dial_left = relay->config.forwards[connection->forward].dial_count;
    connection->dial_index =
        relay->preferred[connection->forward] - 1; /* unsigned: wraps both ways */
    connection->dial_error = ETIMEDOUT;
    try_next(relay, connection);
}

void dial_begin(struct relay *relay, struct connection *connection)
{
    connection->dial_until = relay->now + role_rules[connection->role].dial_window;
    connection->dial_backoff = DIAL_BACKOFF_MS;
    start_round(relay, connection);
}

static void shake_hands(struct relay *relay, struct connection *connection)
{
    struct side *target = &connection->sides[SIDE_TARGET];
    int result = tls_link_handshake(connection->tls, target->fd);
    target->unsent = tls_link_unsent(connection->tls);
    if (result < 0)
        attempt_failed(relay, connection, -result);
    else if (result > 0)
        target_reached(relay, connection);
}

static void connected(struct relay *relay, struct connection *connection)
{
    const struct relay_forward *forward = &relay->config.forwards[connection->forward];
    if (!tls_is_wanted(forward, address_of(relay, connection))) {
        target_reached(relay, connection);
        return;
    }
    tls_begin(connection, forward);
    connection_enter(relay, connection, CONNECTION_SECURING, relay->now + HANDSHAKE_MS);
    shake_hands(relay, connection);
}

void dial_event(struct relay *relay, struct connection *connection, uint32_t events)
{
    int error = 0;
    socklen_t length = sizeof(error);
    if (connection->state == CONNECTION_SECURING) {
        shake_hands(relay, connection);
        return;
    }
    /* A connect that failed is an error of the socket, which poll reports; without one there is
     * none to ask for. */
    if ((events & (EPOLLERR | EPOLLHUP)) &&
        getsockopt(connection->sides[SIDE_TARGET].fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    if (error != 0)
        attempt_failed(relay, connection, error);
    else
        connected(relay, connection);
}

void dial_expired(struct relay *relay, struct connection *connection)
{
    if (connection->sides[SIDE_TARGET].fd < 0)
        start_round(relay, connection);
    else
        attempt_failed(relay, connection, ETIMEDOUT);
}
