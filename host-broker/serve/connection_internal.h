/* A connection from the sandbox: the states it goes through, its socket, and its two buffers.
 *
 * `in` holds bytes that were received and not taken yet: the preface, the head of a request, its
 * body until the upstream takes it, perhaps the next requests. `out` holds bytes to be sent. Each
 * is one block of fixed size: when `in` is full nothing is read, when `out` is full the upstream is
 * paused, so a slow side delays only its own peer. Over TCP a TLS session (tls.h), with one record
 * in each direction, lies between the buffers and the socket. Pipelined requests are handled one by
 * one, each after the answer before it was sent completely, so answers come in order.
 *
 * In every state the end of the client's sending means that the client has left: its upstream
 * request ends at once. Half-closed connections are not served (doc/design.md, "Broker").
 */
#ifndef HOST_BROKER_SERVE_CONNECTION_INTERNAL_H
#define HOST_BROKER_SERVE_CONNECTION_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "host-broker/http/request_head.h"
#include "host-broker/serve/broker.h"
#include "host-broker/serve/exchange_internal.h"

enum connection_state {
    CONNECTION_UNUSED, /* a free place in the table */

    /* Accepted and not authenticated; over TCP the TLS handshake comes first. Left when the preface
     * is right (IDLE), wrong or malformed (FLUSHING an error), or after 5 s. */
    CONNECTION_PREFACE,

    /* Authenticated, between requests. Left with the first byte of a request, or at the idle
     * time-out. */
    CONNECTION_IDLE,

    /* Part of a head was received. Left with its end (EXCHANGE, or FLUSHING an error), or after 30
     * s. */
    CONNECTION_HEAD,

    /* `exchange` is set and writes to `out`; it takes the body from `in` as the upstream accepts
     * it. Left when the exchange ends (FLUSHING). */
    CONNECTION_EXCHANGE,

    /* An answer is complete, or was broken off, and its end waits in `out`; nothing is read. Left
     * when all is sent, to what `after` says. */
    CONNECTION_FLUSHING,

    /* The last answer was sent and our sending has ended. Received bytes are dropped, because a
     * close with unread bytes resets the connection before the client has read the answer. Left
     * when the client closes, or after 5 s. */
    CONNECTION_LINGER,

    /* Freed by connection_settle. */
    CONNECTION_CLOSED,
    CONNECTION_STATE_COUNT
};

extern const char *const connection_state_names[CONNECTION_STATE_COUNT];

/* What follows when an answer has been sent. */
enum connection_after {
    AFTER_NEXT_REQUEST,
    AFTER_LINGER,
    AFTER_BREAK, /* a close without a proper end: the answer was broken off */
};

struct connection {
    enum connection_state state;
    enum connection_after after;
    struct broker *broker;
    uint32_t index; /* in the table: its event reference */
    int fd;
    bool vsock;
    struct tls_link *tls; /* over TCP; else NULL */
    bool ended;           /* close_notify was sent */
    bool authenticated;
    bool early;     /* unwanted bytes came: they stay in the socket */
    bool marked;    /* waits for connection_settle */
    uint32_t armed; /* what the event loop watches */
    int64_t deadline;
    struct exchange_client client;
    struct request_scan scan;
    struct exchange *exchange; /* CONNECTION_EXCHANGE only */
    struct connection *next;   /* in the list of unused, or of marked connections */
};

/* Takes over an accepted descriptor; there must be an unused place. */
struct connection *connection_open(struct broker *broker, int fd, enum endpoint_kind kind);

/* The event loop reports the descriptor. */
void connection_ready(struct connection *connection, uint32_t events);

/* Sends, goes through the states as far as possible, and updates what is watched. Frees the
 * connection when it is closed. */
void connection_settle(struct connection *connection);

/* Its deadline has passed. */
void connection_expire(struct connection *connection);

/* Cancels its exchange; connection_settle frees it. */
void connection_close(struct connection *connection);

#endif
