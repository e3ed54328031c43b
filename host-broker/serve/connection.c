/* The states of a connection, and its socket: reading, sending, and what the event loop watches. */
#include "host-broker/serve/connection_internal.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/wire/preface.h"
#include "host-broker/http/response_head.h"

#define HEAD_TIMEOUT (30 * SECONDS)  /* of a request, from its first byte */
#define LINGER_TIMEOUT (5 * SECONDS) /* time for the client to read the last answer */
#define UNAUTHENTICATED_LINGER_TIMEOUT (1 * SECONDS)
#define VSOCK_WRITE_MAX (32 * 1024) /* larger packets fail on some machine monitors */
#define READ_ROOM_MIN (16 * 1024)   /* with less room behind the unread bytes they are moved */

const char *const connection_state_names[CONNECTION_STATE_COUNT] = {
    [CONNECTION_UNUSED] = "unused",     [CONNECTION_PREFACE] = "preface",
    [CONNECTION_IDLE] = "idle",         [CONNECTION_HEAD] = "head",
    [CONNECTION_EXCHANGE] = "exchange", [CONNECTION_FLUSHING] = "flushing",
    [CONNECTION_LINGER] = "linger",     [CONNECTION_CLOSED] = "closed",
};
static_assert(ARRAY_LENGTH(connection_state_names) == CONNECTION_STATE_COUNT, "a name for each");

/* --- time limits ------------------------------------------------------------------------------ */

static int64_t idle_time(const struct connection *connection)
{
    return connection->broker->options.idle_timeout_seconds * SECONDS;
}

/* How long a state may last: from its beginning, in EXCHANGE and FLUSHING from the last byte that
 * moved. */
static int64_t time_limit(const struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_PREFACE:
        return PREFACE_TIMEOUT_MS * MILLISECONDS;
    case CONNECTION_HEAD:
        return HEAD_TIMEOUT;
    case CONNECTION_FLUSHING:
        return connection->authenticated ? idle_time(connection) : UNAUTHENTICATED_LINGER_TIMEOUT;
    case CONNECTION_IDLE:
    case CONNECTION_EXCHANGE:
        return idle_time(connection);
    case CONNECTION_LINGER:
        return connection->authenticated ? LINGER_TIMEOUT : UNAUTHENTICATED_LINGER_TIMEOUT;
    case CONNECTION_UNUSED:
    case CONNECTION_CLOSED:
    case CONNECTION_STATE_COUNT:
        break;
    }
    return 0;
}

/* Has the engine settle the connection before it waits again. */
static void mark(struct connection *connection)
{
    if (connection->marked)
        return;
    connection->marked = true;
    connection->next = connection->broker->marked;
    connection->broker->marked = connection;
}

static void set_deadline(struct connection *connection, int64_t deadline)
{
    connection->deadline = deadline;
    if (deadline < connection->broker->next_deadline)
        connection->broker->next_deadline = deadline;
}

static void set_state(struct connection *connection, enum connection_state state)
{
    connection->state = state;
    if (state == CONNECTION_CLOSED)
        connection->deadline = NEVER;
    else
        set_deadline(connection, connection->broker->loop.now + time_limit(connection));
    mark(connection);
}

/* A byte moved: the idle time starts again. The deadline only becomes later, so next_deadline
 * stays. */
static void restart_idle_time(struct connection *connection)
{
    if (connection->state == CONNECTION_EXCHANGE || connection->state == CONNECTION_FLUSHING)
        connection->deadline = connection->broker->loop.now + time_limit(connection);
}

/* --- the socket ------------------------------------------------------------------------------- */

/* In LINGER the bytes are dropped, so they are not decrypted. */
static ssize_t receive_some(struct connection *connection, void *room, size_t length)
{
    if (connection->tls && connection->state != CONNECTION_LINGER)
        return tls_link_receive(connection->tls, connection->fd, room, length);
    ssize_t received;
    do
        received = recv(connection->fd, room, length, 0);
    while (received < 0 && errno == EINTR);
    return received < 0 ? -errno : received;
}

static void begin_record(struct connection *connection)
{
    connection->client.record = (struct log_record){
        .active = true,
        .started = connection->broker->loop.now,
        .proxy = "",
        .end = REQUEST_REFUSED,
    };
}

/* Logs a peer whose handshake failed; it gets no answer because nothing is sent in the clear. */
static void log_failed_handshake(struct connection *connection, int error)
{
    if (!connection->tls || connection->tls->established || error != -EPROTO)
        return;
    begin_record(connection);
    connection->client.record.error = "codev_no_tls";
}

/* Reads until the socket is empty or the block is full. */
static void receive(struct connection *connection)
{
    struct buffer *in = &connection->client.in;
    buffer_take(in, &connection->broker->buffers);
    if (BUFFER_BLOCK - in->end < READ_ROOM_MIN)
        buffer_compact(in);
    while (in->end < BUFFER_BLOCK) {
        ssize_t length = receive_some(connection, in->bytes + in->end, BUFFER_BLOCK - in->end);
        if (length == -EAGAIN)
            return;
        if (length <= 0) {
            log_failed_handshake(connection, (int)length);
            connection->client.left = true;
            return;
        }
        bool emptied = !connection->tls && (size_t)length < BUFFER_BLOCK - in->end;
        in->end += (size_t)length;
        restart_idle_time(connection);
        if (emptied)
            return; /* saves the call that would return EAGAIN; later bytes are a new event */
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
               buffer_length(&connection->client.in) < BUFFER_BLOCK;
    case CONNECTION_FLUSHING:
    case CONNECTION_UNUSED:
    case CONNECTION_CLOSED:
    case CONNECTION_STATE_COUNT:
        break;
    }
    return false;
}

/* After a request was read completely, the socket stays watched for input although none is wanted:
 * the next request rarely comes before the answer, and not watching would cost two system calls for
 * each request. Bytes that come early stay in the socket, and it is no longer watched. */
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
        connection->client.left = true;
    mark(connection);
}

/* The TLS session may hold a record to be sent even if `out` is empty. */
static void send_over_tls(struct connection *connection)
{
    struct buffer *out = &connection->client.out;
    const char *front = out->bytes ? buffer_front(out) : "";
    ssize_t taken = tls_link_transmit(connection->tls, connection->fd, front, buffer_length(out));
    if (taken < 0)
        connection->client.left = true;
    if (taken <= 0)
        return;
    buffer_consume(out, (size_t)taken);
    restart_idle_time(connection);
}

static void send_plain(struct connection *connection)
{
    struct buffer *out = &connection->client.out;
    while (buffer_length(out) > 0) {
        size_t length = buffer_length(out);
        if (connection->vsock && length > VSOCK_WRITE_MAX)
            length = VSOCK_WRITE_MAX;
        ssize_t sent = send(connection->fd, buffer_front(out), length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            if (errno != EAGAIN)
                connection->client.left = true;
            return;
        }
        buffer_consume(out, (size_t)sent);
        restart_idle_time(connection);
    }
}

/* Sends `out` as far as the socket accepts it. */
static void send_out(struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSED)
        return;
    if (!connection->tls)
        send_plain(connection);
    else if (connection->state != CONNECTION_LINGER)
        send_over_tls(connection);
}

/* Takes bytes that the TLS session holds back, if they are wanted and there is room: no event would
 * report them. True when something was taken. */
static bool refill(struct connection *connection)
{
    struct buffer *in = &connection->client.in;
    size_t held = connection->tls ? tls_link_held(connection->tls) : 0;
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
    restart_idle_time(connection);
    return length > 0;
}

static bool has_unsent(const struct connection *connection)
{
    return buffer_length(&connection->client.out) > 0 ||
           (connection->tls && tls_link_unsent(connection->tls));
}

/* Ends our sending, over TLS with close_notify first. False while close_notify waits to be sent. */
static bool end_sending(struct connection *connection)
{
    if (connection->tls && !connection->ended) {
        connection->ended = true;
        tls_link_end(connection->tls, connection->fd);
    }
    if (connection->tls && tls_link_unsent(connection->tls))
        return false;
    shutdown(connection->fd, SHUT_WR);
    return true;
}

/* Turns the close that follows into a reset where the transport has one: nothing else shows a
 * client of HTTP/1.0 that the answer was broken off. */
static void reset_on_close(struct connection *connection)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

/* Returns empty blocks and watches for what the state needs. 0 or a negative errno. */
static int watch(struct connection *connection)
{
    struct event_loop *loop = &connection->broker->loop;
    struct event_ref ref = {.source = EVENT_CONNECTION, .index = connection->index};
    uint32_t events = EVENT_PEER_ENDED | (watches_input(connection) ? EVENT_READABLE : 0) |
                      (has_unsent(connection) ? EVENT_WRITABLE : 0);
    if (buffer_length(&connection->client.in) == 0)
        buffer_give_back(&connection->client.in, &connection->broker->buffers);
    if (buffer_length(&connection->client.out) == 0)
        buffer_give_back(&connection->client.out, &connection->broker->buffers);
    if (events == connection->armed)
        return 0;
    int result = connection->armed == 0 ? event_loop_add(loop, connection->fd, events, ref)
                                        : event_loop_change(loop, connection->fd, events, ref);
    connection->armed = events;
    return result;
}

static void close_socket(struct connection *connection)
{
    buffer_give_back(&connection->client.in, &connection->broker->buffers);
    buffer_give_back(&connection->client.out, &connection->broker->buffers);
    if (connection->tls)
        tls_server_finish(&connection->broker->tls, connection->index);
    connection->tls = NULL;
    close(connection->fd); /* the event loop forgets it with the descriptor */
    connection->fd = -1;
}

/* --- answers of the broker -------------------------------------------------------------------- */

static void finish(struct connection *connection, enum connection_after after)
{
    connection->after = after;
    set_state(connection, CONNECTION_FLUSHING);
}

/* Answers with an error. record.end is set by the caller. */
static void refuse(struct connection *connection, const struct refusal *refusal, bool keep_alive)
{
    struct buffer *out = &connection->client.out;
    struct log_record *record = &connection->client.record;
    bool next = keep_alive && !broker_is_draining(connection->broker);
    struct broker_error_framing framing = {
        .keep_alive = next,
        .head_only = strcmp(record->method, "HEAD") == 0,
    };
    buffer_take(out, &connection->broker->buffers);
    buffer_compact(out);
    int length = broker_error_response(out->bytes + out->end, BUFFER_BLOCK - out->end,
                                       refusal->error, refusal->message, refusal->rule, framing);
    out->end += length > 0 ? (size_t)length : 0;
    record->status = broker_error_kinds[refusal->error].status;
    record->error = broker_error_kinds[refusal->error].type;
    finish(connection, next && length > 0 ? AFTER_NEXT_REQUEST : AFTER_LINGER);
}

/* Refuses what could not be read as a request. */
static void refuse_unread(struct connection *connection, enum broker_error error,
                          const char *message)
{
    struct refusal refusal = {.error = error, .message = message};
    begin_record(connection);
    refuse(connection, &refusal, false);
}

/* --- the sink of its exchange ----------------------------------------------------------------- */

static struct connection *connection_of(struct exchange_client *client)
{
    return (struct connection *)((char *)client - offsetof(struct connection, client));
}

static void on_moved(struct exchange_client *client)
{
    restart_idle_time(connection_of(client));
}

static void on_mark(struct exchange_client *client)
{
    mark(connection_of(client));
}

static void on_send(struct exchange_client *client)
{
    send_out(connection_of(client));
}

static void on_end(struct exchange_client *client, const struct exchange_outcome *outcome)
{
    struct connection *connection = connection_of(client);
    connection->exchange = NULL;
    switch (outcome->end) {
    case EXCHANGE_ANSWERED:
        finish(connection, outcome->keep_alive ? AFTER_NEXT_REQUEST : AFTER_LINGER);
        break;
    case EXCHANGE_REFUSED:
        refuse(connection, outcome->refusal, outcome->keep_alive);
        break;
    case EXCHANGE_BROKEN_OFF:
        client->record.error = broker_error_kinds[outcome->refusal->error].type;
        finish(connection, AFTER_BREAK);
        break;
    case EXCHANGE_ABANDONED:
        connection_close(connection);
        break;
    case EXCHANGE_END_COUNT:
        break;
    }
}

static const struct exchange_sink sink = {on_moved, on_mark, on_send, on_end};

/* --- begin and end ---------------------------------------------------------------------------- */

struct connection *connection_open(struct broker *broker, int fd, enum endpoint_kind kind)
{
    struct connection *connection = broker->unused_connections;
    broker->unused_connections = connection->next;
    *connection = (struct connection){
        .broker = broker,
        .index = (uint32_t)(connection - broker->connections),
        .fd = fd,
        .vsock = kind == ENDPOINT_VSOCK,
        .client.sink = &sink,
    };
    if (kind == ENDPOINT_TCP4 || kind == ENDPOINT_TCP6)
        connection->tls = tls_server_begin(&broker->tls, connection->index);
    broker->connection_count++;
    broker->unauthenticated++;
    set_state(connection, CONNECTION_PREFACE);
    return connection;
}

void connection_close(struct connection *connection)
{
    struct log_record *record = &connection->client.record;
    if (connection->state == CONNECTION_UNUSED || connection->state == CONNECTION_CLOSED)
        return;
    if (connection->exchange)
        exchange_cancel(connection->exchange);
    connection->exchange = NULL;
    if (record->active && record->end == REQUEST_COMPLETE)
        record->end = REQUEST_CANCELLED; /* the answer was not sent completely */
    access_log_request(&connection->broker->log, record, connection->broker->loop.now);
    if (connection->state == CONNECTION_IDLE && !connection->client.left)
        (void)end_sending(connection); /* between requests the end is a proper one */
    set_state(connection, CONNECTION_CLOSED);
}

static void free_place(struct connection *connection)
{
    struct broker *broker = connection->broker;
    close_socket(connection);
    if (!connection->authenticated)
        broker->unauthenticated--;
    broker->connection_count--;
    connection->state = CONNECTION_UNUSED;
    connection->next = broker->unused_connections;
    broker->unused_connections = connection;
}

/* --- the states ------------------------------------------------------------------------------- */

/* True for a client that sends no preface at all: it gets 401, as for a wrong token. */
static bool lacks_preface(const struct buffer *in)
{
    static const char magic[] = "CODEV";
    size_t length = buffer_length(in) < sizeof(magic) - 1 ? buffer_length(in) : sizeof(magic) - 1;
    return memcmp(buffer_front(in), magic, length) != 0;
}

static bool step_preface(struct connection *connection)
{
    struct buffer *in = &connection->client.in;
    struct broker *broker = connection->broker;
    if (buffer_length(in) == 0)
        return false;
    switch (preface_check_broker(buffer_front(in), buffer_length(in), broker->token)) {
    case PREFACE_MORE:
        return false;
    case PREFACE_MALFORMED:
        refuse_unread(connection,
                      lacks_preface(in) ? BROKER_ERROR_UNAUTHENTICATED
                                        : BROKER_ERROR_MALFORMED_PREFACE,
                      NULL);
        return true;
    case PREFACE_WRONG:
        refuse_unread(connection, BROKER_ERROR_UNAUTHENTICATED, NULL);
        return true;
    case PREFACE_RIGHT:
        break;
    }
    secret_wipe(in->bytes + in->start, PREFACE_BROKER_LENGTH);
    buffer_consume(in, PREFACE_BROKER_LENGTH);
    connection->authenticated = true;
    broker->unauthenticated--;
    set_state(connection, CONNECTION_IDLE);
    return true;
}

static void record_request(struct connection *connection, const struct request_head *head)
{
    struct log_record *record = &connection->client.record;
    begin_record(connection);
    log_record_text(record->method, sizeof(record->method), head->method);
    const char *query = memchr(head->target.bytes, '?', head->target.length);
    struct slice path = head->target;
    if (query)
        path.length = (size_t)(query - path.bytes);
    if (path.bytes[0] != '/')
        path.length = 0; /* an absolute target may hold a password */
    log_record_text(record->path, sizeof(record->path), path);
}

/* Routes a request whose head is complete: the first `length` bytes of `in`. */
static void begin_request(struct connection *connection, const struct request_head *head,
                          size_t length)
{
    struct broker *broker = connection->broker;
    struct exchange_client *client = &connection->client;
    struct refusal refusal;
    struct route route;
    record_request(connection, head);
    int result = route_find(&route, broker, head, &refusal);
    log_record_text(client->record.name, sizeof(client->record.name), slice_of(route.name));
    if (result == 0)
        connection->exchange = exchange_start(broker, client, &route, head, &refusal);
    buffer_consume(&client->in, length);
    if (!connection->exchange) {
        /* the next request cannot be found behind a body that nobody reads: then the connection
         * ends */
        bool bodiless = head->framing == BODY_NONE ||
                        (head->framing == BODY_LENGTH && head->content_length == 0);
        refuse(connection, &refusal, head->keep_alive && bodiless);
        return;
    }
    connection->after = AFTER_NEXT_REQUEST;
    set_state(connection, CONNECTION_EXCHANGE);
    if (head->expect_continue && buffer_length(&client->in) == 0) {
        buffer_take(&client->out, &broker->buffers);
        buffer_append(&client->out, RESPONSE_CONTINUE, sizeof(RESPONSE_CONTINUE) - 1);
    }
}

static bool step_head(struct connection *connection)
{
    struct buffer *in = &connection->client.in;
    struct request_head head;
    enum request_fault fault = REQUEST_FAULT_NONE;
    if (broker_is_draining(connection->broker) && connection->state == CONNECTION_IDLE) {
        connection_close(connection);
        return false;
    }
    if (buffer_length(in) == 0)
        return false;
    ssize_t length =
        request_head_parse(&head, buffer_front(in), buffer_length(in), &connection->scan, &fault);
    if (length > 0) {
        connection->scan = (struct request_scan){0};
        begin_request(connection, &head, (size_t)length);
        return true;
    }
    if (length < 0) {
        refuse_unread(connection, request_fault_kinds[fault].error,
                      request_fault_kinds[fault].reason);
        return true;
    }
    if (connection->state == CONNECTION_IDLE && request_scan_begun(&connection->scan))
        set_state(connection, CONNECTION_HEAD);
    return false;
}

static bool step_flushing(struct connection *connection)
{
    if (has_unsent(connection))
        return false;
    access_log_request(&connection->broker->log, &connection->client.record,
                       connection->broker->loop.now);
    switch (connection->after) {
    case AFTER_NEXT_REQUEST:
        connection->scan = (struct request_scan){0};
        set_state(connection, CONNECTION_IDLE);
        return true;
    case AFTER_LINGER:
        if (!end_sending(connection))
            return false;
        set_state(connection, CONNECTION_LINGER);
        return true;
    case AFTER_BREAK:
        reset_on_close(connection);
        connection_close(connection);
        return false;
    }
    return false;
}

/* One step in the present state. True when another may follow. */
static bool step(struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_PREFACE:
        return step_preface(connection);
    case CONNECTION_IDLE:
    case CONNECTION_HEAD:
        return step_head(connection);
    case CONNECTION_EXCHANGE:
        return exchange_resume(connection->exchange);
    case CONNECTION_FLUSHING:
        return step_flushing(connection);
    case CONNECTION_LINGER:
        buffer_consume(&connection->client.in, buffer_length(&connection->client.in));
        return false;
    case CONNECTION_UNUSED:
    case CONNECTION_CLOSED:
    case CONNECTION_STATE_COUNT:
        break;
    }
    return false;
}

void connection_settle(struct connection *connection)
{
    /* Each send is followed by a step, since it can make room in `out` for which an upstream is
     * paused: without a step nothing would resume that upstream. */
    do
        send_out(connection);
    while (step(connection) || refill(connection));
    if (connection->client.left)
        connection_close(connection);
    if (connection->state != CONNECTION_CLOSED && watch(connection) < 0)
        connection_close(connection);
    if (connection->state == CONNECTION_CLOSED)
        free_place(connection);
    connection->marked = false; /* cleared last: marks made above need no other round */
}

void connection_expire(struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_PREFACE:
        if (connection->tls && !connection->tls->established)
            connection_close(connection); /* without a handshake no answer can be sent */
        else
            refuse_unread(connection, BROKER_ERROR_UNAUTHENTICATED, NULL);
        break;
    case CONNECTION_HEAD:
        refuse_unread(connection, BROKER_ERROR_REQUEST_TIMEOUT, NULL);
        break;
    case CONNECTION_EXCHANGE:
        exchange_expire(connection->exchange);
        break;
    case CONNECTION_IDLE:
    case CONNECTION_FLUSHING:
    case CONNECTION_LINGER:
        connection_close(connection);
        break;
    case CONNECTION_UNUSED:
    case CONNECTION_CLOSED:
    case CONNECTION_STATE_COUNT:
        break;
    }
}
