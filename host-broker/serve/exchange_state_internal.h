/* The state of an exchange, and the functions that its parts (exchange*.c) offer each other.
 *
 * Inside libcurl's callbacks nothing is freed: they fill `out`, set `fault`, and mark the client.
 */
#ifndef HOST_BROKER_SERVE_EXCHANGE_STATE_INTERNAL_H
#define HOST_BROKER_SERVE_EXCHANGE_STATE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include "host-broker/http/body_decoder.h"
#include "host-broker/http/response_head.h"
#include "host-broker/rewrite/rewrite.h"
#include "host-broker/rewrite/rewrite_etag.h"
#include "host-broker/rewrite/rewrite_gzip.h"
#include "host-broker/serve/broker.h"
#include "host-broker/serve/route_internal.h"

struct exchange_client;

/* A problem that a callback found; it can report one only by failing the transfer. */
enum exchange_fault {
    EXCHANGE_SOUND,
    EXCHANGE_BAD_BODY,       /* the client's chunks are malformed */
    EXCHANGE_BAD_HEAD,       /* the head of the upstream's answer is not valid HTTP */
    EXCHANGE_BAD_GZIP,       /* a compressed document that is rewritten is malformed */
    EXCHANGE_HEAD_TOO_LARGE, /* the head of the upstream's answer exceeds a block */
    EXCHANGE_STALE,          /* a kept connection proved closed before anything was sent on it */
    EXCHANGE_PART,           /* part of a document that is rewritten: it is asked for as a whole */
    EXCHANGE_NOT_SENT_TWICE, /* a kept connection broke; the request may have had its effect */
    EXCHANGE_FAULT_COUNT
};

enum exchange_phase {
    EXCHANGE_AWAITING, /* no line of a head yet, or only heads of 1xx */
    EXCHANGE_IN_HEAD,  /* `lines` collects the head */
    EXCHANGE_IN_BODY,  /* the head was passed on; framing is decided */
};

struct rewriter {
    struct rewrite document;
    struct rewrite_gzip gzip;
};

/* The upstream's content coding, as far as it matters for rewriting. */
enum exchange_coding { EXCHANGE_PLAIN, EXCHANGE_GZIP, EXCHANGE_OTHER_CODING };

struct exchange {
    struct broker *broker;          /* these two belong to the place in the table: */
    struct rewriter *rewriter;      /* they are set once and stay; see rewrite_start */
    CURL *easy;                     /* one for each transfer; in a free place never used */
    struct exchange_client *client; /* NULL: a free place */
    struct exchange *next;          /* the next free place */
    struct upstream_pool *pool;
    enum route_kind kind;
    const struct upstream_url *origin;
    const struct rule *rule;
    const char *name;
    char *url;
    size_t origin_length; /* of the URL's part before the path */
    struct curl_slist *fields;
    char *secret; /* the line in `fields` that holds the credential */
    char error_text[CURL_ERROR_SIZE];

    /* the way to the upstream (exchange_proxy.c) */
    size_t way_index; /* the entry of way.list that is tried */
    bool waiting;     /* for the resolver: libcurl does not have the handle */
    bool transferred; /* libcurl has had the handle */
    bool proxied;     /* the present way is a proxy */
    bool forwarded;   /* an HTTP proxy reads the request itself: no tunnel */
    bool negotiates;  /* the proxy refused the password and offers Negotiate */
    bool proxy_login; /* the proxy answered 407 to a forwarded request */

    /* the request (exchange_request.c) */
    struct body_decoder body;
    bool head_request, keep_alive;
    int minor_version;
    bool once;  /* must not be sent a second time */
    bool fresh; /* a connection was opened for it */
    unsigned attempts;
    bool upload_paused;

    /* the answer (exchange_response.c) */
    enum exchange_phase phase;
    enum exchange_fault fault;
    int status;
    struct buffer lines;
    enum response_framing framing;
    uint64_t left; /* RESPONSE_LENGTH: content still to come */
    bool closes;   /* the head said Connection: close */
    bool download_paused;

    /* links in the answer (exchange_rewrite.c) */
    uint32_t candidates; /* rows of the table of routes that the request may come under */
    bool revalidates;    /* the guest holds a rewritten document: a 304 is about that one */
    bool stale;          /* the guest's copy was made under other rules */
    bool asked_whole;    /* Range was taken out of the request */
    bool rewriting;      /* content goes through the rewriter */
    bool decoding;       /* and through gzip before that */
    size_t taken;        /* of the content that libcurl will deliver again */

    /* Large and used only as far as its list reaches: last, since exchange.c, release, does not
     * clear it. */
    struct proxy_way way;
};

/* Begin and end (exchange.c). */

/* Ends an exchange that libcurl does not have: refuses it, or breaks its answer off. */
void exchange_fail(struct exchange *exchange, const struct refusal *refusal);

/* The way to the upstream (exchange_proxy.c). */

/* Finds the way and gives the handle to libcurl, or waits for the resolver. 0, or -ENOMEM or
 * -EHOSTUNREACH and *refusal. */
int exchange_begin(struct exchange *exchange, struct refusal *refusal);

/* Gives the handle to libcurl, or a new one with the same options if it has carried a transfer. */
bool exchange_start_transfer(struct exchange *exchange);

/* After a failed transfer: true when it was started again on another way. */
bool exchange_try_next(struct exchange *exchange, CURLcode result);

/* The request (exchange_request.c). */

/* Sets up the handle. 0, -ENOMEM, -EMSGSIZE when method or target are too long to pass on, or
 * -EINVAL for HEAD with a body. */
int exchange_set_request(struct exchange *exchange, const struct route *route,
                         const struct request_head *head);

/* Wipes and frees what exchange_set_request allocated. */
void exchange_drop_request(struct exchange *exchange);

/* The answer (exchange_response.c). */

/* libcurl's callbacks; `user` is the exchange. */
size_t exchange_on_header(char *line, size_t size, size_t count, void *user);
size_t exchange_on_content(char *content, size_t size, size_t count, void *user);

/* The context in which location.h and link_field.h resolve references. */
struct location_context exchange_location_context(const struct exchange *exchange);

/* Adds framed content to `out`; there is room. */
void exchange_pass_content(struct exchange *exchange, const char *content, size_t length);

/* True when `out` has room for one more piece of content from libcurl, its chunk's frame, and the
 * last chunk. */
bool exchange_has_room(struct exchange *exchange);

/* Links in the answer (exchange_rewrite.c). */

/* Finds out whether the answer may be one that is rewritten. */
void exchange_rewrite_prepare(struct exchange *exchange, const struct route *route,
                              const struct request_head *head);

/* A field of such a request on its way to the upstream. False when it is dropped; its value may be
 * replaced by a text in static memory. */
bool exchange_rewrite_request_field(const struct exchange *exchange, struct field *field);

enum exchange_treatment {
    EXCHANGE_AS_IT_IS,
    EXCHANGE_REWRITTEN, /* the content or, for HEAD and 304, the fields that describe it */
    EXCHANGE_ASK_WHOLE, /* a part of a document that is rewritten: not passed on */
};

/* Decides from the head of the answer. */
enum exchange_treatment exchange_rewrite_treat(struct exchange *exchange, struct slice content_type,
                                               enum exchange_coding coding);

/* A field of a rewritten answer: as exchange_rewrite_request_field. */
bool exchange_rewrite_response_field(const struct exchange *exchange, struct field *field);

/* The work of libcurl's write callback for a rewritten answer. */
size_t exchange_rewrite_content(struct exchange *exchange, const char *content, size_t length);
bool exchange_rewrite_has_room(const struct exchange *exchange);

/* False when a compressed document has not reached its own end. */
bool exchange_rewrite_is_whole(const struct exchange *exchange);

/* The document is whole: writes what the rewriter still holds. */
void exchange_rewrite_finish(struct exchange *exchange);

/* The transfer has ended with EXCHANGE_PART: asks again without Range. */
bool exchange_rewrite_ask_whole(struct exchange *exchange);

#endif
