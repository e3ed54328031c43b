/* The main loop: accepting, events, deadlines, signals. */
#include "host-broker/serve/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wire/preface.h"
#include "host-broker/base/process.h"
#include "host-broker/serve/connection_internal.h"
#include "host-broker/serve/exchange_internal.h"

#define UNAUTHENTICATED_MAX 64 /* connections without the token; more evict the oldest */
/* A younger connection is not evicted, because an emulated guest is slow: the next one waits. */
#define UNAUTHENTICATED_GRACE (3 * SECONDS)
#define ACCEPT_PER_WAKE_UP 64
#define ACCEPT_PAUSE (200 * MILLISECONDS) /* when descriptors have run out */
#define DRAIN_TIMEOUT (10 * SECONDS)      /* after SIGTERM */

static int open_connections(struct broker *broker, struct failure *why)
{
    unsigned count = broker->options.max_connections;
    broker->connections = calloc(count, sizeof(*broker->connections));
    if (!broker->connections)
        return failure_set(why, ENOMEM, "reserve %u connections", count);
    for (unsigned i = count; i-- > 0;) {
        broker->connections[i].next = broker->unused_connections;
        broker->unused_connections = &broker->connections[i];
    }
    return buffer_pool_open(&broker->buffers, 2 * (size_t)count + broker->options.max_requests,
                            why);
}

static int watch_process(struct broker *broker, struct failure *why)
{
    broker->requests = process_open_requests(why);
    if (broker->requests < 0)
        return broker->requests;
    struct event_ref process = {.source = EVENT_PROCESS}, input = {.source = EVENT_INPUT};
    int result = event_loop_add(&broker->loop, broker->requests, EVENT_READABLE, process);
    broker->lifeline = process_input_is_lifeline();
    if (result == 0 && broker->lifeline)
        result = event_loop_add(&broker->loop, STDIN_FILENO, EVENT_READABLE, input);
    return result < 0 ? failure_errno(why, -result, "watch signals and standard input") : 0;
}

int engine_open(struct broker *broker, struct failure *why)
{
    broker->next_deadline = broker->accept_again = broker->drain_until = NEVER;
    int result = event_loop_open(&broker->loop, why);
    if (result == 0)
        result = watch_process(broker, why);
    if (result == 0)
        result = open_connections(broker, why);
    if (result == 0)
        result = exchange_open_table(broker, why);
    if (result == 0 && proxy_table_watch(&broker->proxies, &broker->loop) < 0)
        result = failure_set(why, ENOMEM, "watch the proxy resolver");
    for (unsigned i = 0; i < ROUTE_KIND_COUNT && result == 0; i++)
        result = upstream_pool_open(&broker->pools[i], &broker->loop, i, why);
    return result;
}

/* Beyond --max-connections: answers without reading the request; over TCP it only closes, because
 * the answer would not be encrypted. */
static void refuse_connection(int fd, enum endpoint_kind kind)
{
    if (kind == ENDPOINT_TCP4 || kind == ENDPOINT_TCP6) {
        close(fd);
        return;
    }
    char answer[BROKER_ERROR_RESPONSE_MAX];
    struct broker_error_framing framing = {.keep_alive = false};
    int length = broker_error_response(answer, sizeof(answer), BROKER_ERROR_BUSY,
                                       "too many connections at once: try again", NULL, framing);
    if (length > 0)
        (void)send(fd, answer, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

/* When an unauthenticated connection may be evicted: at once if it was refused already, otherwise
 * after the grace time, since a relay that opens two hundred connections at once sends its prefaces
 * a moment later. */
static int64_t evictable_at(const struct connection *connection)
{
    if (connection->state != CONNECTION_PREFACE)
        return 0;
    return connection->deadline - PREFACE_TIMEOUT_MS * MILLISECONDS + UNAUTHENTICATED_GRACE;
}

/* Closes the oldest unauthenticated connection. The relay sends its preface at once, so connections
 * that send none evict each other and never keep the relay out. */
static void evict_unauthenticated(struct broker *broker)
{
    struct connection *oldest = NULL;
    for (unsigned i = 0; i < broker->options.max_connections; i++) {
        struct connection *connection = &broker->connections[i];
        if (connection->authenticated || connection->state == CONNECTION_UNUSED ||
            connection->marked) /* to be settled: what it has sent was not read yet */
            continue;
        if (!oldest || evictable_at(connection) < evictable_at(oldest))
            oldest = connection;
    }
    if (!oldest)
        return;
    broker->crowded_until = evictable_at(oldest);
    if (broker->crowded_until <= broker->loop.now)
        connection_close(oldest);
}

/* True while all places for unauthenticated connections are taken by young ones. */
static bool is_crowded(const struct broker *broker)
{
    return broker->unauthenticated >= UNAUTHENTICATED_MAX &&
           broker->crowded_until > broker->loop.now;
}

static void accept_connections(struct broker *broker, struct listener *listener)
{
    for (int i = 0; i < ACCEPT_PER_WAKE_UP; i++) {
        if (broker->unauthenticated >= UNAUTHENTICATED_MAX) {
            evict_unauthenticated(broker); /* the place is free in the next wake-up */
            return;
        }
        int fd = listener_accept(listener);
        if (fd == -EPERM)
            continue; /* the peer was refused */
        if (fd < 0) {
            if (fd != -EAGAIN)
                broker->accept_again = broker->loop.now + ACCEPT_PAUSE;
            return;
        }
        enum endpoint_kind kind = listener->endpoint.kind;
        if (!broker->unused_connections) {
            refuse_connection(fd, kind);
            continue;
        }
        connection_ready(connection_open(broker, fd, kind), EVENT_READABLE);
    }
}

/* Clients wait in the backlog while descriptors have run out, or no place is free. */
static void arm_listeners(struct broker *broker)
{
    if (broker->accept_again <= broker->loop.now)
        broker->accept_again = NEVER;
    bool wanted = broker->accept_again == NEVER && !is_crowded(broker);
    for (size_t i = 0; i < broker->listener_count; i++) {
        struct listener *listener = &broker->listeners[i];
        struct event_ref ref = {.source = EVENT_LISTENER, .index = (uint32_t)i};
        if (listener->fd < 0 || listener->armed == wanted)
            continue;
        if (wanted)
            (void)event_loop_add(&broker->loop, listener->fd, EVENT_READABLE, ref);
        else
            event_loop_remove(&broker->loop, listener->fd);
        listener->armed = wanted;
    }
}

/* SIGTERM: accepts no connection, gives requests in progress 10 s. A second SIGTERM ends at
 * once. */
static void drain(struct broker *broker)
{
    if (broker_is_draining(broker)) {
        broker->ended = true;
        return;
    }
    broker->drain_until = broker->loop.now + DRAIN_TIMEOUT;
    for (size_t i = 0; i < broker->listener_count; i++)
        listener_close(&broker->listeners[i]);
    for (unsigned i = 0; i < broker->options.max_connections; i++) {
        struct connection *connection = &broker->connections[i];
        if (connection->state == CONNECTION_PREFACE || connection->state == CONNECTION_IDLE)
            connection_close(connection);
    }
}

/* SIGHUP: opens the log again, reads the token and the certificates again, forgets proxies. */
static void reload(struct broker *broker)
{
    struct failure warning, why;
    if (access_log_reopen(&broker->log, &why) < 0)
        broker_warn(broker, "%s", why.text);
    (void)broker_logged_in(broker, true);
    if (trust_load(&broker->trust, broker->options.ca_files, broker->options.ca_file_count,
                   &warning, &why) < 0)
        broker_warn(broker, "%s", why.text);
    else if (warning.text[0] != '\0')
        broker_warn(broker, "%s", warning.text);
    proxy_table_forget_all(&broker->proxies);
}

static void take_request(struct broker *broker)
{
    switch (process_read_request(broker->requests)) {
    case PROCESS_CARRY_ON:
        break;
    case PROCESS_END:
        drain(broker);
        break;
    case PROCESS_RELOAD:
        reload(broker);
        break;
    }
}

static void handle(struct broker *broker, const struct event *event)
{
    struct event_ref ref = event->ref;
    switch (ref.source) {
    case EVENT_LISTENER:
        accept_connections(broker, &broker->listeners[ref.index]);
        break;
    case EVENT_CONNECTION:
        connection_ready(&broker->connections[ref.index], event->what);
        break;
    case EVENT_UPSTREAM:
        upstream_pool_ready(&broker->pools[ref.pool], ref, event->what);
        break;
    case EVENT_RESOLVER:
        exchange_hear_proxies(broker);
        break;
    case EVENT_PROCESS:
        take_request(broker);
        break;
    case EVENT_INPUT:
        broker->ended = broker->ended || process_input_ended();
        break;
    case EVENT_SOURCE_COUNT:
        break;
    }
}

static void finish_exchanges(struct broker *broker)
{
    CURLcode result;
    CURL *easy;
    for (unsigned i = 0; i < ROUTE_KIND_COUNT; i++) {
        upstream_pool_tick(&broker->pools[i]);
        while ((easy = upstream_pool_finished(&broker->pools[i], &result)))
            exchange_finished(easy, result);
    }
}

static void expire_connections(struct broker *broker)
{
    int64_t now = broker->loop.now;
    if (broker->next_deadline > now)
        return;
    broker->next_deadline = NEVER;
    for (unsigned i = 0; i < broker->options.max_connections; i++) {
        struct connection *connection = &broker->connections[i];
        if (connection->state == CONNECTION_UNUSED)
            continue;
        if (connection->deadline <= now)
            connection_expire(connection);
        if (connection->deadline < broker->next_deadline)
            broker->next_deadline = connection->deadline;
    }
}

static void settle_marked(struct broker *broker)
{
    while (broker->marked) {
        struct connection *connection = broker->marked;
        broker->marked = connection->next;
        connection_settle(connection);
    }
}

/* Sends the requests that settling has begun, which saves a wake-up. */
static void start_exchanges(struct broker *broker)
{
    bool due = false;
    for (unsigned i = 0; i < ROUTE_KIND_COUNT; i++)
        due = due || broker->pools[i].deadline <= broker->loop.now;
    if (!due)
        return;
    finish_exchanges(broker);
    settle_marked(broker);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_wake_up(struct broker *broker)
{
    int64_t deadline = access_log_flush(&broker->log, broker->loop.now);
    deadline = earlier(deadline, broker->next_deadline);
    deadline = earlier(deadline, broker->accept_again);
    if (is_crowded(broker))
        deadline = earlier(deadline, broker->crowded_until);
    deadline = earlier(deadline, broker->drain_until);
    deadline = earlier(deadline, broker->proxies.deadline);
    for (unsigned i = 0; i < ROUTE_KIND_COUNT; i++)
        deadline = earlier(deadline, broker->pools[i].deadline);
    return deadline;
}

static bool has_drained(const struct broker *broker)
{
    return broker_is_draining(broker) &&
           (broker->connection_count == 0 || broker->drain_until <= broker->loop.now);
}

void engine_run(struct broker *broker)
{
    while (!broker->ended && !has_drained(broker)) {
        arm_listeners(broker);
        int count = event_loop_wait(&broker->loop, next_wake_up(broker));
        for (int i = 0; i < count; i++)
            handle(broker, &broker->loop.ready[i]);
        finish_exchanges(broker);
        if (broker->proxies.deadline <= broker->loop.now)
            exchange_hear_proxies(broker);
        expire_connections(broker);
        settle_marked(broker);
        start_exchanges(broker);
    }
    for (unsigned i = 0; i < broker->options.max_connections; i++)
        connection_close(&broker->connections[i]);
    settle_marked(broker);
}

void engine_close(struct broker *broker)
{
    for (size_t i = 0; i < broker->listener_count; i++)
        listener_close(&broker->listeners[i]);
    exchange_close_table(broker);
    for (unsigned i = 0; i < ROUTE_KIND_COUNT; i++)
        upstream_pool_close(&broker->pools[i]);
    buffer_pool_close(&broker->buffers);
    tls_server_close(&broker->tls);
    free(broker->connections);
    close(broker->requests);
    event_loop_close(&broker->loop);
}
