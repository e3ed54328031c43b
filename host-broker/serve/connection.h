/* A connection from the sandbox: the states it goes through, and its two buffers.
 *
 * `in` holds what came and was not taken yet: the preface, a request's head, its body until the upstream
 * takes it, perhaps the next requests. `out` holds what is to be sent. Each is one block of fixed size;
 * when `in` is full we stop reading, when `out` is full the upstream is paused, so that a slow side slows
 * the other and nobody else. Over TCP a session of TLS (tls.h) lies between them and the socket, with a
 * record in each direction. Pipelined requests are looked at one by one, each when the answer before it
 * has been sent whole, so answers come in order.
 *
 * The end of the client's sending means that it has left (design, section 6), in every state: its
 * upstream request ends at once. Half-close is not served.
 */
#ifndef HOST_BROKER_SERVE_CONNECTION_H
#define HOST_BROKER_SERVE_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "host-broker/base/buffer.h"
#include "host-broker/http/request_head.h"
#include "host-broker/serve/access_log.h"
#include "host-broker/serve/broker.h"
#include "host-broker/serve/route.h"

enum connection_state {
    CONNECTION_UNUSED, /* a free place of the table */

    /* Accepted; nothing is believed; over TCP its handshake runs first. Left when the preface is right (IDLE), wrong or malformed
     * (FLUSHING an error), or after 5 s. */
    CONNECTION_PREFACE,

    /* Authenticated, between requests; at most the idle time-out. Left with a request's first byte. */
    CONNECTION_IDLE,

    /* Some bytes of a head. Left with its end (EXCHANGE, or FLUSHING an error), or after 30 s. */
    CONNECTION_HEAD,

    /* `exchange` is set and owns what goes to `out`; body bytes are taken from `in` as the upstream wants
     * them. Left when the exchange ends (FLUSHING). */
    CONNECTION_EXCHANGE,

    /* An answer is complete (or broke off) and its end waits in `out`; nothing is read. Left when all is
     * sent, to what `after` says. */
    CONNECTION_FLUSHING,

    /* We have said our last and ended our sending; what still comes is dropped, so that the client can
     * read the answer before the connection resets. Left when the client closes, or after 5 s. */
    CONNECTION_LINGER,

    /* To be freed when the engine settles it. */
    CONNECTION_CLOSED,
    CONNECTION_STATE_COUNT
};

extern const char *const connection_state_names[CONNECTION_STATE_COUNT];

/* What comes when an answer has been sent. */
enum connection_after {
    AFTER_NEXT_REQUEST,
    AFTER_LINGER,
    AFTER_BREAK, /* closed at once and without a proper end: the answer was cut short */
};

struct connection {
    enum connection_state state;
    enum connection_after after;
    struct broker *broker;
    uint32_t index; /* in the table: its event reference */
    int fd;
    bool vsock;
    struct tls_link *tls; /* over TCP; else NULL */
    bool ended;           /* close_notify was said */
    bool authenticated;
    bool peer_left; /* end of its sending, or an error */
    bool early;     /* bytes came that are not wanted yet: they wait in the socket */
    bool marked;    /* waits for connection_settle */
    uint32_t armed; /* what the event loop watches */
    int64_t deadline;
    struct buffer in, out;
    struct request_scan scan;
    struct exchange *exchange; /* CONNECTION_EXCHANGE only */
    struct log_record record;
    struct connection *next; /* unused, or marked */
};

/* Takes over a descriptor that was accepted at a listener of this kind; the caller has checked that a place is free. */
struct connection *connection_open(struct broker *broker, int fd, enum endpoint_kind kind);

/* The event loop says that the descriptor is ready. */
void connection_ready(struct connection *connection, uint32_t events);

/* Has the engine settle the connection before it waits again. */
void connection_mark(struct connection *connection);

/* Sends, goes on in the states as far as possible, adjusts what is watched; frees it when closed. */
void connection_settle(struct connection *connection);

/* Its deadline has come. */
void connection_expire(struct connection *connection);

/* Closes it (cancelling its exchange) when it is settled. */
void connection_close(struct connection *connection);

/* For the exchange. Bytes moved: the idle time starts anew. */
void connection_active(struct connection *connection);

/* Sends what `out` holds as far as the socket takes it. */
void connection_send(struct connection *connection);

/* The exchange is over and gone; what it left in `out` is sent, then `after`. */
void connection_finish(struct connection *connection, enum connection_after after);

/* Answers with an error of ours, then goes on or closes. The record's end is set by the caller. */
void connection_refuse(struct connection *connection, const struct refusal *refusal,
                       bool keep_alive);

#endif
