/* The states of a connection: see connection.h. Reading, sending and watching are in connection_io.c. */
#include "host-broker/serve/connection.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/wire/preface.h"
#include "host-broker/serve/connection_internal.h"
#include "host-broker/serve/exchange.h"

const char *const connection_state_names[CONNECTION_STATE_COUNT] = {
    [CONNECTION_UNUSED] = "unused",     [CONNECTION_PREFACE] = "preface",
    [CONNECTION_IDLE] = "idle",         [CONNECTION_HEAD] = "head",
    [CONNECTION_EXCHANGE] = "exchange", [CONNECTION_FLUSHING] = "flushing",
    [CONNECTION_LINGER] = "linger",     [CONNECTION_CLOSED] = "closed",
};
static_assert(ARRAY_LENGTH(connection_state_names) == CONNECTION_STATE_COUNT, "a name for each");

static void set_deadline(struct connection *connection, int64_t deadline)
{
    connection->deadline = deadline;
    if (deadline < connection->broker->next_deadline)
        connection->broker->next_deadline = deadline;
}

static int64_t idle_time(const struct connection *connection)
{
    return connection->broker->options.idle_timeout_seconds * SECONDS;
}

/* How long a state may last, from its beginning or (EXCHANGE, FLUSHING) from the last byte that moved. */
static int64_t time_limit(const struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_PREFACE:
        return PREFACE_TIMEOUT_MS * MILLISECONDS;
    case CONNECTION_HEAD:
        return HEAD_TIMEOUT;
    case CONNECTION_FLUSHING:
        return connection->authenticated ? idle_time(connection) : STRANGER_LINGER_TIMEOUT;
    case CONNECTION_IDLE:
    case CONNECTION_EXCHANGE:
        return idle_time(connection);
    case CONNECTION_LINGER:
        return connection->authenticated ? LINGER_TIMEOUT : STRANGER_LINGER_TIMEOUT;
    case CONNECTION_UNUSED:
    case CONNECTION_CLOSED:
    case CONNECTION_STATE_COUNT:
        break;
    }
    return 0;
}

static void set_state(struct connection *connection, enum connection_state state)
{
    connection->state = state;
    if (state == CONNECTION_CLOSED)
        connection->deadline = NEVER;
    else
        set_deadline(connection, connection->broker->loop.now + time_limit(connection));
    connection_mark(connection);
}

void connection_active(struct connection *connection)
{
    if (connection->state == CONNECTION_EXCHANGE || connection->state == CONNECTION_FLUSHING)
        connection->deadline = connection->broker->loop.now + time_limit(connection);
}

void connection_mark(struct connection *connection)
{
    if (connection->marked)
        return;
    connection->marked = true;
    connection->next = connection->broker->marked;
    connection->broker->marked = connection;
}

struct connection *connection_open(struct broker *broker, int fd, enum endpoint_kind kind)
{
    struct connection *connection = broker->unused_connections;
    broker->unused_connections = connection->next;
    *connection = (struct connection){
        .broker = broker,
        .index = (uint32_t)(connection - broker->connections),
        .fd = fd,
        .vsock = kind == ENDPOINT_VSOCK,
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
    if (connection->state == CONNECTION_UNUSED || connection->state == CONNECTION_CLOSED)
        return;
    if (connection->exchange != NULL)
        exchange_cancel(connection->exchange);
    if (connection->record.active && connection->record.end == REQUEST_COMPLETE)
        connection->record.end = REQUEST_CANCELLED; /* complete, but for the client */
    access_log_request(&connection->broker->log, &connection->record, connection->broker->loop.now);
    if (connection->state == CONNECTION_IDLE && !connection->peer_left)
        (void)connection_io_end(connection); /* between requests a close is no break */
    set_state(connection, CONNECTION_CLOSED);
}

static void free_place(struct connection *connection)
{
    struct broker *broker = connection->broker;
    connection_io_close(connection);
    if (!connection->authenticated)
        broker->unauthenticated--;
    broker->connection_count--;
    connection->state = CONNECTION_UNUSED;
    connection->next = broker->unused_connections;
    broker->unused_connections = connection;
}

void connection_finish(struct connection *connection, enum connection_after after)
{
    connection->exchange = NULL;
    connection->after = after;
    set_state(connection, CONNECTION_FLUSHING);
}

void connection_refuse(struct connection *connection, const struct refusal *refusal,
                       bool keep_alive)
{
    struct buffer *out = &connection->out;
    bool next = keep_alive && !broker_is_draining(connection->broker);
    struct broker_error_framing framing = {
        .keep_alive = next,
        .head_only = strcmp(connection->record.method, "HEAD") == 0,
    };
    buffer_take(out, &connection->broker->buffers);
    buffer_compact(out);
    int length = broker_error_response(out->bytes + out->end, BUFFER_BLOCK - out->end,
                                       refusal->error, refusal->message, refusal->rule, framing);
    out->end += length > 0 ? (size_t)length : 0;
    connection->record.status = broker_error_kinds[refusal->error].status;
    connection->record.error = broker_error_kinds[refusal->error].type;
    connection_finish(connection, next && length > 0 ? AFTER_NEXT_REQUEST : AFTER_LINGER);
}

/* A refusal of what was never a request, or not one that could be read. */
static void refuse_unread(struct connection *connection, enum broker_error error,
                          const char *message)
{
    struct refusal refusal = {.error = error, .message = message};
    connection->record = (struct log_record){
        .active = true,
        .started = connection->broker->loop.now,
        .proxy = "",
        .end = REQUEST_REFUSED,
    };
    connection_refuse(connection, &refusal, false);
}

/* What does not even begin like a preface is a client that brought none: 401, as for a wrong token. */
static bool lacks_preface(const struct buffer *in)
{
    static const char magic[] = "CODEV";
    size_t length = buffer_length(in) < sizeof(magic) - 1 ? buffer_length(in) : sizeof(magic) - 1;
    return memcmp(buffer_front(in), magic, length) != 0;
}

static bool step_preface(struct connection *connection)
{
    struct buffer *in = &connection->in;
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

static void begin_record(struct connection *connection, const struct request_head *head)
{
    struct log_record *record = &connection->record;
    *record = (struct log_record){
        .active = true,
        .started = connection->broker->loop.now,
        .proxy = "",
        .end = REQUEST_REFUSED,
    };
    log_record_text(record->method, sizeof(record->method), head->method);
    const char *query = memchr(head->target.bytes, '?', head->target.length);
    struct slice path = head->target;
    if (query != NULL)
        path.length = (size_t)(query - path.bytes);
    if (path.bytes[0] != '/')
        path.length = 0; /* an absolute target may hold a password */
    log_record_text(record->path, sizeof(record->path), path);
}

/* Routes a request whose head is complete, `length` bytes of `in`. */
static void begin_request(struct connection *connection, const struct request_head *head,
                          size_t length)
{
    struct refusal refusal;
    struct route route;
    begin_record(connection, head);
    int result = route_find(&route, connection->broker, head, &refusal);
    log_record_text(connection->record.name, sizeof(connection->record.name), slice_of(route.name));
    if (result == 0)
        result = exchange_start(connection, &route, head, &refusal);
    buffer_consume(&connection->in, length);
    /* a body that nobody takes cannot be told from the next request: then the connection ends */
    bool bodiless =
        head->framing == BODY_NONE || (head->framing == BODY_LENGTH && head->content_length == 0);
    if (result < 0) {
        connection_refuse(connection, &refusal, head->keep_alive && bodiless);
        return;
    }
    connection->after = AFTER_NEXT_REQUEST;
    set_state(connection, CONNECTION_EXCHANGE);
    if (head->expect_continue && buffer_length(&connection->in) == 0) {
        buffer_take(&connection->out, &connection->broker->buffers);
        buffer_append(&connection->out, RESPONSE_CONTINUE, sizeof(RESPONSE_CONTINUE) - 1);
    }
}

static bool step_head(struct connection *connection)
{
    struct request_head head;
    enum request_fault fault = REQUEST_FAULT_NONE;
    if (broker_is_draining(connection->broker) && connection->state == CONNECTION_IDLE) {
        connection_close(connection);
        return false;
    }
    if (buffer_length(&connection->in) == 0)
        return false;
    ssize_t length = request_head_parse(&head, buffer_front(&connection->in),
                                        buffer_length(&connection->in), &connection->scan, &fault);
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
    if (connection_io_unsent(connection))
        return false;
    access_log_request(&connection->broker->log, &connection->record, connection->broker->loop.now);
    switch (connection->after) {
    case AFTER_NEXT_REQUEST:
        connection->scan = (struct request_scan){0};
        set_state(connection, CONNECTION_IDLE);
        return true;
    case AFTER_LINGER:
        if (!connection_io_end(connection))
            return false;
        set_state(connection, CONNECTION_LINGER);
        return true;
    case AFTER_BREAK:
        connection_io_break(connection);
        connection_close(connection);
        return false;
    }
    return false;
}

/* One step in the present state; true when another may follow. */
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
        buffer_consume(&connection->in, buffer_length(&connection->in));
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
    /* Nothing is sent behind the last step: that could make room in `out` which nobody then notices, and
     * an upstream that was paused for want of it would stay so. */
    do
        connection_send(connection);
    while (step(connection) || connection_io_refill(connection));
    if (connection->peer_left)
        connection_close(connection);
    if (connection->state != CONNECTION_CLOSED && connection_io_arm(connection) < 0)
        connection_close(connection);
    if (connection->state == CONNECTION_CLOSED)
        free_place(connection);
    connection->marked = false; /* until here: what it did to itself needs no further round */
}

void connection_expire(struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_PREFACE:
        if (connection->tls != NULL && !connection->tls->established)
            connection_close(connection); /* nothing can be said to it */
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
