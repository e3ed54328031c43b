/* Reading, sending and watching: see connection_internal.h. */
#include "host-broker/serve/connection_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-broker/serve/exchange.h"

#define VSOCK_WRITE_MAX (32 * 1024) /* larger packets fail on some machine monitors */
#define READ_ROOM_MIN (16 * 1024)   /* with less room behind the unread bytes they are moved */

/* While lingering all that comes is thrown away, so it need not be deciphered. */
static ssize_t receive_some(struct connection *connection, void *room, size_t length)
{
    if (connection->tls != NULL && connection->state != CONNECTION_LINGER)
        return tls_link_receive(connection->tls, connection->fd, room, length);
    ssize_t received;
    do
        received = recv(connection->fd, room, length, 0);
    while (received < 0 && errno == EINTR);
    return received < 0 ? -errno : received;
}

/* What did not speak our TLS, or left in the middle of it: the log has a line, it gets no answer. */
static void note_stranger(struct connection *connection, int error)
{
    if (connection->tls == NULL || connection->tls->established || error != -EPROTO)
        return;
    connection->record = (struct log_record){
        .active = true,
        .started = connection->broker->loop.now,
        .proxy = "",
        .error = "codev_no_tls",
        .end = REQUEST_REFUSED,
    };
}

/* Reads until the socket is empty or the block is full. */
static void receive(struct connection *connection)
{
    struct buffer *in = &connection->in;
    buffer_take(in, &connection->broker->buffers);
    if (BUFFER_BLOCK - in->end < READ_ROOM_MIN)
        buffer_compact(in);
    while (in->end < BUFFER_BLOCK) {
        ssize_t length = receive_some(connection, in->bytes + in->end, BUFFER_BLOCK - in->end);
        if (length == -EAGAIN)
            return;
        if (length <= 0) {
            note_stranger(connection, (int)length);
            connection->peer_left = true;
            return;
        }
        bool emptied = connection->tls == NULL && (size_t)length < BUFFER_BLOCK - in->end;
        in->end += (size_t)length;
        connection_active(connection);
        if (emptied)
            return; /* asking again would cost a call to hear so; what comes now wakes us */
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

/* Once a request is read whole, reading stays watched though nothing is wanted: the next request seldom comes before the
 * answer, so taking it out of the set and back would be two calls a request for nothing. Bytes that do come
 * are left in the socket, and then it is taken out. */
static bool watches_input(const struct connection *connection)
{
    bool whole =
        connection->state == CONNECTION_FLUSHING ||
        (connection->state == CONNECTION_EXCHANGE && exchange_body_is_done(connection->exchange));
    return wants_input(connection) ||
           (whole && (connection->armed & EVENT_READABLE) && !connection->early);
}

void connection_ready(struct connection *connection, uint32_t events)
{
    if (connection->state == CONNECTION_UNUSED || connection->state == CONNECTION_CLOSED)
        return; /* closed earlier in this wake-up */
    if (events & EVENT_READABLE) {
        connection->early = !wants_input(connection);
        if (!connection->early)
            receive(connection);
    }
    if (events & (EVENT_PEER_ENDED | EVENT_BROKEN))
        connection->peer_left = true;
    connection_mark(connection);
}

/* Through TLS, in which a record may wait though `out` is empty. */
static void send_secure(struct connection *connection)
{
    struct buffer *out = &connection->out;
    const char *front = out->bytes != NULL ? buffer_front(out) : "";
    ssize_t taken = tls_link_transmit(connection->tls, connection->fd, front, buffer_length(out));
    if (taken < 0)
        connection->peer_left = true;
    if (taken <= 0)
        return;
    buffer_consume(out, (size_t)taken);
    connection_active(connection);
}

void connection_send(struct connection *connection)
{
    struct buffer *out = &connection->out;
    if (connection->tls != NULL && connection->state != CONNECTION_CLOSED &&
        connection->state != CONNECTION_LINGER)
        send_secure(connection);
    if (connection->tls != NULL)
        return;
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

bool connection_io_refill(struct connection *connection)
{
    struct buffer *in = &connection->in;
    size_t held = connection->tls != NULL ? tls_link_held(connection->tls) : 0;
    if (held == 0 || connection->state == CONNECTION_LINGER || !wants_input(connection))
        return false;
    buffer_take(in, &connection->broker->buffers);
    buffer_compact(in);
    if (held > BUFFER_BLOCK - in->end)
        held = BUFFER_BLOCK - in->end;
    if (held == 0)
        return false;
    ssize_t length = receive_some(connection, in->bytes + in->end, held);
    in->end += length > 0 ? (size_t)length : 0;
    connection_active(connection);
    return length > 0;
}

bool connection_io_unsent(const struct connection *connection)
{
    return buffer_length(&connection->out) > 0 ||
           (connection->tls != NULL && tls_link_unsent(connection->tls));
}

bool connection_io_end(struct connection *connection)
{
    if (connection->tls != NULL && !connection->ended) {
        connection->ended = true;
        tls_link_end(connection->tls, connection->fd);
    }
    if (connection->tls != NULL && tls_link_unsent(connection->tls))
        return false;
    shutdown(connection->fd, SHUT_WR);
    return true;
}

int connection_io_arm(struct connection *connection)
{
    struct event_loop *loop = &connection->broker->loop;
    struct event_ref ref = {.source = EVENT_CONNECTION, .index = connection->index};
    uint32_t events = EVENT_PEER_ENDED | (watches_input(connection) ? EVENT_READABLE : 0) |
                      (connection_io_unsent(connection) ? EVENT_WRITABLE : 0);
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
    if (connection->tls != NULL)
        tls_server_finish(&connection->broker->tls, connection->index);
    connection->tls = NULL;
    close(connection->fd); /* which also ends the watching */
    connection->fd = -1;
}
