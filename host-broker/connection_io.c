/* Reading, sending and watching: see connection_io.h. */
#include "host-broker/connection_io.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-broker/exchange.h"

#define VSOCK_WRITE_MAX (32 * 1024) /* larger packets fail on some machine monitors */
#define READ_ROOM_MIN (16 * 1024)   /* with less room behind the unread bytes they are moved */

/* Reads until the socket is empty or the block is full. */
static void receive(struct connection *connection)
{
    struct buffer *in = &connection->in;
    buffer_take(in, &connection->broker->buffers);
    if (BUFFER_BLOCK - in->end < READ_ROOM_MIN)
        buffer_compact(in);
    while (in->end < BUFFER_BLOCK) {
        ssize_t length = recv(connection->fd, in->bytes + in->end, BUFFER_BLOCK - in->end, 0);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && errno == EAGAIN)
            return;
        if (length <= 0) {
            connection->peer_left = true;
            return;
        }
        in->end += (size_t)length;
        connection_active(connection);
    }
}

void connection_ready(struct connection *connection, uint32_t events)
{
    if (connection->state == CONNECTION_UNUSED || connection->state == CONNECTION_CLOSED)
        return; /* closed earlier in this wake-up */
    if (events & EPOLLIN)
        receive(connection);
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        connection->peer_left = true;
    connection_mark(connection);
}

void connection_send(struct connection *connection)
{
    struct buffer *out = &connection->out;
    while (buffer_length(out) > 0 && connection->state != CONNECTION_CLOSED) {
        size_t length = buffer_length(out);
        if (connection->vsock && length > VSOCK_WRITE_MAX)
            length = VSOCK_WRITE_MAX;
        ssize_t sent = send(connection->fd, buffer_front(out), length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            if (errno != EAGAIN)
                connection->peer_left = true;
            return;
        }
        buffer_consume(out, (size_t)sent);
        connection_active(connection);
    }
}

static bool wants_input(const struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_PREFACE:
    case CONNECTION_IDLE:
    case CONNECTION_HEAD:
    case CONNECTION_LINGER:
        return true;
    case CONNECTION_EXCHANGE:
        return !exchange_body_is_done(connection->exchange) &&
               buffer_length(&connection->in) < BUFFER_BLOCK;
    case CONNECTION_FLUSHING:
    case CONNECTION_UNUSED:
    case CONNECTION_CLOSED:
    case CONNECTION_STATE_COUNT:
        break;
    }
    return false;
}

int connection_io_arm(struct connection *connection)
{
    struct event_loop *loop = &connection->broker->loop;
    struct event_ref ref = {.source = EVENT_CONNECTION, .index = connection->index};
    uint32_t events = EPOLLRDHUP | (wants_input(connection) ? EPOLLIN : 0) |
                      (buffer_length(&connection->out) > 0 ? EPOLLOUT : 0);
    if (buffer_length(&connection->in) == 0)
        buffer_give_back(&connection->in, &connection->broker->buffers);
    if (buffer_length(&connection->out) == 0)
        buffer_give_back(&connection->out, &connection->broker->buffers);
    if (events == connection->armed)
        return 0;
    int result = connection->armed == 0 ? event_loop_add(loop, connection->fd, events, ref)
                                        : event_loop_change(loop, connection->fd, events, ref);
    connection->armed = events;
    return result;
}

void connection_io_break(struct connection *connection)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

void connection_io_close(struct connection *connection)
{
    buffer_give_back(&connection->in, &connection->broker->buffers);
    buffer_give_back(&connection->out, &connection->broker->buffers);
    close(connection->fd); /* which also ends the watching */
    connection->fd = -1;
}
