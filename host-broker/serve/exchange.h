/* One request on its way to an upstream, and the answer on its way back, both streamed through libcurl.
 *
 * Downwards, the request's body is decoded from the connection's `in` when libcurl asks for it, and
 * framed anew. Upwards, the lines of the answer's head are collected in a block; when the head is
 * complete it is written to `out` with framing of our own, and sent at once; each piece of content
 * follows as it comes. Whichever side cannot go on is paused and resumed when there are bytes, or room.
 *
 * It ends in one of three ways: libcurl reports the transfer's end (exchange_finished), the client leaves
 * (exchange_cancel: the upstream's connection is closed at once), or nothing moves for too long
 * (exchange_expire). An answer that broke off never gets a proper end.
 *
 * libcurl's callbacks run inside libcurl: there nothing is freed; they fill `out`, set `fault`, mark the
 * connection.
 */
#ifndef HOST_BROKER_SERVE_EXCHANGE_H
#define HOST_BROKER_SERVE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include "host-broker/http/body_decoder.h"
#include "host-broker/http/response_head.h"
#include "host-broker/rewrite/rewrite.h"
#include "host-broker/rewrite/rewrite_etag.h"
#include "host-broker/rewrite/rewrite_gzip.h"
#include "host-broker/serve/connection.h"
#include "host-broker/serve/route.h"

#define EXCHANGE_CURL_BUFFER (16 * 1024L) /* libcurl's own, downwards */
/* Upwards a whole head fits: libcurl 7.88 never sends the end of one that is larger by three buffers. */
#define EXCHANGE_CURL_HEAD (96 * 1024L)
#define EXCHANGE_CURL_SMALL_HEAD (16 * 1024L) /* nearly all; libcurl takes no less */
#define EXCHANGE_READ_MAX (16 * 1024)         /* of a body at once */

/* What a callback found and could only report by failing the transfer. */
enum exchange_fault {
    EXCHANGE_SOUND,
    EXCHANGE_BAD_BODY,       /* the client's chunks are malformed */
    EXCHANGE_BAD_HEAD,       /* the upstream's head is no HTTP */
    EXCHANGE_BAD_GZIP,       /* a compressed document that is rewritten is malformed */
    EXCHANGE_HEAD_TOO_LARGE, /* the upstream's head exceeds a block */
    EXCHANGE_STALE, /* a kept connection was seen to be dead before anything was sent on it */
    EXCHANGE_PART,  /* a part came of a document that is rewritten: it is asked for whole */
    EXCHANGE_NOT_SENT_TWICE, /* a kept connection died; the request may have had its effect */
    EXCHANGE_FAULT_COUNT
};

/* Where the answer is. */
enum exchange_phase {
    EXCHANGE_AWAITING, /* no line of a head, or only heads of 1xx */
    EXCHANGE_IN_HEAD,  /* `lines` collects */
    EXCHANGE_IN_BODY,  /* the head was passed on; framing is decided */
};

/* What a document goes through. */
struct rewriter {
    struct rewrite document;
    struct rewrite_gzip gzip;
};

/* How the upstream's content is encoded, as far as it matters for rewriting. */
enum exchange_coding { EXCHANGE_PLAIN, EXCHANGE_GZIP, EXCHANGE_OTHER_CODING };

struct exchange {
    struct connection *connection; /* NULL: a free place of the table */
    struct exchange *next;         /* unused */
    CURL *easy;                    /* made once for each place */
    struct upstream_pool *pool;
    enum route_kind kind;
    const struct upstream_url *origin;
    const struct rule *rule;
    const char *name;
    char *url;
    size_t origin_length; /* of the URL's part before the path */
    struct curl_slist *fields;
    char *secret; /* the line among `fields` that holds the credential */
    char error_text[CURL_ERROR_SIZE];

    /* the way there (exchange_proxy.c) */
    size_t way_index; /* the one that is tried */
    bool waiting;     /* for the resolver: libcurl does not have the handle */
    bool proxied;     /* the present way is a proxy */
    bool forwarded;   /* an HTTP proxy reads the request itself: no tunnel */
    bool negotiates;  /* the proxy refused the password and offers Negotiate */
    bool proxy_login; /* the proxy answered 407 to a forwarded request */

    /* the request */
    struct body_decoder body;
    bool head_request, keep_alive;
    int minor_version;
    bool once;  /* must not be sent a second time */
    bool fresh; /* a connection was opened for it */
    unsigned attempts;
    bool upload_paused;

    /* the answer */
    enum exchange_phase phase;
    enum exchange_fault fault;
    int status;
    struct buffer lines;
    enum response_framing framing;
    uint64_t left; /* RESPONSE_LENGTH: content still to come */
    bool closes;   /* the head said Connection: close */
    bool download_paused;

    /* links in the answer (exchange_rewrite.c) */
    struct rewriter *rewriter; /* made once for each place, used as far as touched */
    uint32_t candidates;       /* rows of the table of routes that the request may come under */
    bool revalidates;          /* the guest holds a document of ours: so does a 304 */
    bool stale;                /* the guest's copy was made under other rules */
    bool asked_whole;          /* Range was taken out of the request */
    bool rewriting;            /* content goes through the rewriter */
    bool decoding;             /* and before that through gzip */
    size_t taken;              /* of the content that libcurl will deliver again */

    struct proxy_way
        way; /* large, used as far as its list reaches: last, see exchange.c, release */
};

/* Makes the table's handles. 0 or a negative errno. */
int exchange_open_table(struct broker *broker, struct failure *why);
void exchange_close_table(struct broker *broker);

/* Starts asking the upstream. 0, or -EBUSY, -ENOMEM, -EMSGSIZE, -EINVAL and *refusal. */
int exchange_start(struct connection *connection, const struct route *route,
                   const struct request_head *head, struct refusal *refusal);

/* Goes on with what was paused and need not be any more. True when something was resumed. */
bool exchange_resume(struct exchange *exchange);

/* True when all of the request's body has been taken. */
bool exchange_body_is_done(const struct exchange *exchange);

/* libcurl has ended the transfer of this handle. */
void exchange_finished(CURL *easy, CURLcode result);

/* Ends it for an idle time that has run out: 504, 408 when the client owes the body, or a break. */
void exchange_expire(struct exchange *exchange);

/* Refuses an exchange that libcurl does not have, or breaks its answer off. */
void exchange_fail(struct exchange *exchange, const struct refusal *refusal);

/* The resolver has answered: exchanges that wait for it go on. */
void exchange_hear_proxies(struct broker *broker);

/* Ends it for a client that has left. The connection is told nothing. */
void exchange_cancel(struct exchange *exchange);

/* For exchange.c: exchange_proxy.c, exchange_request.c and exchange_response.c. */

/* Finds the way and gives the handle to libcurl, or waits for the resolver. 0, -ENOMEM or -EHOSTUNREACH and
 * *refusal. */
int exchange_begin(struct exchange *exchange, struct refusal *refusal);

/* After a transfer failed: true when it was started anew on another way. */
bool exchange_try_next(struct exchange *exchange, CURLcode result);

/* Sets up the handle. 0, -ENOMEM, -EMSGSIZE when method or target are too long to pass on, or -EINVAL for
 * HEAD with a body. */
int exchange_set_request(struct exchange *exchange, const struct route *route,
                         const struct request_head *head);

/* Wipes and frees what exchange_set_request allocated. */
void exchange_drop_request(struct exchange *exchange);

/* libcurl's callbacks; `user` is the exchange. */
size_t exchange_on_header(char *line, size_t size, size_t count, void *user);
size_t exchange_on_content(char *content, size_t size, size_t count, void *user);

/* Finds out whether the answer may be one that is rewritten (exchange_rewrite.c). */
void exchange_rewrite_prepare(struct exchange *exchange, const struct route *route,
                              const struct request_head *head);

/* A field of such a request on its way to the upstream: false when it does not pass; its value may be
 * changed (into static memory). */
bool exchange_rewrite_request_field(const struct exchange *exchange, struct field *field);

/* How the answer's head is to be treated. */
enum exchange_treatment {
    EXCHANGE_AS_IT_IS,
    EXCHANGE_REWRITTEN, /* content or, for HEAD and 304, what is said about it */
    EXCHANGE_ASK_WHOLE, /* a part of what is rewritten: no answer yet */
};

enum exchange_treatment exchange_rewrite_treat(struct exchange *exchange, struct slice content_type,
                                               enum exchange_coding coding);

/* A field of a rewritten answer: as exchange_rewrite_request_field. */
bool exchange_rewrite_response_field(const struct exchange *exchange, struct field *field);

/* What libcurl's write callback does for such an answer. */
size_t exchange_rewrite_content(struct exchange *exchange, const char *content, size_t length);
bool exchange_rewrite_has_room(const struct exchange *exchange);

/* False when a compressed document has not come to its own end. */
bool exchange_rewrite_is_whole(const struct exchange *exchange);

/* The document is whole: writes what was held. */
void exchange_rewrite_finish(struct exchange *exchange);

/* The transfer has ended with EXCHANGE_PART: asks anew, without Range. */
bool exchange_rewrite_ask_whole(struct exchange *exchange);

/* What location.h and link_field.h resolve against. */
struct location_context exchange_location_context(const struct exchange *exchange);

/* Adds content to `out`, framed; there is room. */
void exchange_pass_content(struct exchange *exchange, const char *content, size_t length);

/* Room in `out` for one more piece of content from libcurl, its chunk's frame, and the last chunk. */
bool exchange_has_room(struct exchange *exchange);

#endif
