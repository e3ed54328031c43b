/* An exchange: one request on its way to an upstream and the answer on its way back, both streamed
 * through libcurl.
 *
 * The request's body is decoded from the client's `in` when libcurl asks for it, and framed again.
 * The lines of the answer's head are collected in a block; when the head is complete it is written
 * to the client's `out` with our own framing and sent at once; each piece of content follows as it
 * comes. A side that cannot go on is paused, and resumed when there are bytes or room.
 *
 * An exchange ends in one of three ways: libcurl reports the end of the transfer, the client leaves
 * (exchange_cancel closes the upstream's connection at once), or no byte moves for too long
 * (exchange_expire). An answer that breaks off never gets a proper end.
 *
 * The exchange does not know the connection that it serves. It sees an exchange_client and reports
 * to its sink.
 */
#ifndef HOST_BROKER_SERVE_EXCHANGE_INTERNAL_H
#define HOST_BROKER_SERVE_EXCHANGE_INTERNAL_H

#include <stdbool.h>

#include <curl/curl.h>

#include "host-broker/base/buffer.h"
#include "host-broker/http/request_head.h"
#include "host-broker/serve/access_log.h"
#include "host-broker/serve/broker.h"
#include "host-broker/serve/route_internal.h"

struct exchange; /* exchange_state_internal.h */
struct exchange_client;

enum exchange_end {
    EXCHANGE_ANSWERED,   /* the whole answer was written to `out` */
    EXCHANGE_REFUSED,    /* nothing was written: the client is to get `refusal` */
    EXCHANGE_BROKEN_OFF, /* part of an answer was written; `refusal` says why */
    EXCHANGE_ABANDONED,  /* the client has left */
    EXCHANGE_END_COUNT
};

struct exchange_outcome {
    enum exchange_end end;
    bool keep_alive;               /* the client's connection can carry another request */
    const struct refusal *refusal; /* valid during the call */
};

/* What an exchange tells the owner of its client. All calls may come from inside libcurl, except
 * `end`, which frees the exchange. */
struct exchange_sink {
    void (*moved)(struct exchange_client *client); /* a byte moved: the idle time starts again */
    void (*mark)(struct exchange_client *client);  /* look at it before the next wait */
    void (*send)(struct exchange_client *client);  /* send what `out` holds, as far as possible */
    void (*end)(struct exchange_client *client, const struct exchange_outcome *outcome);
};

/* The client's side of an exchange. */
struct exchange_client {
    const struct exchange_sink *sink;
    struct buffer in;  /* received and not taken yet */
    struct buffer out; /* to be sent */
    bool left;         /* it has ended its sending, or its connection has failed */
    struct log_record record;
};

/* Makes the table's handles. 0 or a negative errno with a reason. */
int exchange_open_table(struct broker *broker, struct failure *why);
void exchange_close_table(struct broker *broker);

/* Begins to ask the upstream. NULL and *refusal when it cannot. */
struct exchange *exchange_start(struct broker *broker, struct exchange_client *client,
                                const struct route *route, const struct request_head *head,
                                struct refusal *refusal);

/* Resumes what is paused and can go on. True when something was resumed. */
bool exchange_resume(struct exchange *exchange);

/* True when the whole body of the request has been taken. */
bool exchange_body_is_done(const struct exchange *exchange);

/* libcurl has ended the transfer of this handle. */
void exchange_finished(CURL *easy, CURLcode result);

/* The idle time is over: 504, 408 when the client owes the body, or a broken answer. */
void exchange_expire(struct exchange *exchange);

/* The resolver has answered: exchanges that wait for it go on. */
void exchange_hear_proxies(struct broker *broker);

/* Ends it for a client that has left, without a call to the sink. */
void exchange_cancel(struct exchange *exchange);

#endif
