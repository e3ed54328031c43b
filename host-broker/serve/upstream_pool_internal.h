/* libcurl's multi interface on the event loop, and the connections to upstreams that it keeps.
 *
 * There is one pool for the gateway and one for named rules: libcurl finds kept connections by
 * host, not by credential, and a connection opened for the gateway must not carry a request for a
 * rule.
 *
 * Upstreams are spoken to in HTTP/1.1 only: before 8.13 libcurl's HTTP/2 has faults with pausing,
 * on which the back-pressure depends.
 *
 * While libcurl runs a callback no part of an exchange may be freed, and its handle may not be
 * removed: callbacks mark, and the engine acts on the marks after the events.
 */
#ifndef HOST_BROKER_SERVE_UPSTREAM_POOL_INTERNAL_H
#define HOST_BROKER_SERVE_UPSTREAM_POOL_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include "common/os/failure.h"
#include "host-broker/base/event_loop.h"

#define UPSTREAM_CONNECTIONS_KEPT 64
/* Open sockets that are tracked; a connection on another one counts as stale. */
#define UPSTREAM_SOCKETS_MAX 1024

/* A socket that libcurl had us open. It closes some without upstream_pool_close_socket. */
struct upstream_socket {
    int fd;
    int local_port; /* 0 or less: not known yet */
};

struct upstream_pool {
    CURLM *multi;
    CURLSH *share; /* TLS sessions: a new connection resumes instead of shaking hands in full */
    struct event_loop *loop;
    unsigned number;                                      /* in event references */
    struct upstream_socket sockets[UPSTREAM_SOCKETS_MAX]; /* in no order */
    unsigned socket_count;
    int64_t deadline; /* of libcurl's timer, or NEVER */
};

int upstream_pool_open(struct upstream_pool *pool, struct event_loop *loop, unsigned number,
                       struct failure *why);

/* Tells libcurl that its socket is ready: `ref` and `events` as the event loop has them. */
void upstream_pool_ready(struct upstream_pool *pool, struct event_ref ref, uint32_t events);

/* Calls libcurl when its deadline has come. */
void upstream_pool_tick(struct upstream_pool *pool);

/* A handle whose transfer has ended, and its result; the handle is removed from the pool. NULL when
 * there is none. */
CURL *upstream_pool_finished(struct upstream_pool *pool, CURLcode *result);

/* Open and close tracked sockets for libcurl (CURLOPT_OPENSOCKETFUNCTION,
 * CURLOPT_CLOSESOCKETFUNCTION). */
curl_socket_t upstream_pool_open_socket(struct upstream_pool *pool,
                                        const struct curl_sockaddr *address);
int upstream_pool_close_socket(void *pool, curl_socket_t fd);

/* True when the kept connection with this local port has something to read or is not tracked: the
 * upstream has closed it, or is about to. libcurl itself takes a TLS connection with an unread
 * close_notify for alive (lib/vtls/openssl.c, ossl_check_cxn). */
bool upstream_pool_is_stale(struct upstream_pool *pool, int local_port);

/* True when OpenSSL holds bytes of this handle's present connection that libcurl has not read: it
 * reads no further than the answer's Content-Length, but a record of TLS may go on behind it. */
bool upstream_pool_has_unread_tls(CURL *easy);

void upstream_pool_close(struct upstream_pool *pool);

#endif
