/* libcurl's multi interface on our event loop, and the connections to upstreams that it keeps.
 *
 * There is one pool for the gateway and one for named rules: libcurl keys kept connections by host, not
 * by our credential, and what was opened for one must not serve the other.
 *
 * HTTP/1.1 is spoken to upstreams whatever libcurl could do: before 8.13 its HTTP/2 has faults with
 * pausing, on which our back-pressure rests.
 *
 * Nothing of an exchange may be freed, nor its handle removed, while libcurl is calling us back: callbacks
 * mark, and the engine acts on the marks between wake-ups.
 */
#ifndef HOST_BROKER_SERVE_UPSTREAM_POOL_H
#define HOST_BROKER_SERVE_UPSTREAM_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include "common/os/failure.h"
#include "host-broker/base/event_loop.h"

#define UPSTREAM_CONNECTIONS_KEPT 64
#define UPSTREAM_SOCKETS_MAX                                                                       \
    1024 /* open at once; more cannot be checked, so they are not used again */

/* A socket that libcurl opened by us. Seen: some are closed without upstream_pool_close_socket. */
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
    int64_t deadline; /* when libcurl wants to be called though nothing is ready, or NEVER */
};

int upstream_pool_open(struct upstream_pool *pool, struct event_loop *loop, unsigned number,
                       struct failure *why);

/* Tells libcurl that its socket is ready: `ref` and `events` as the event loop has them. */
void upstream_pool_ready(struct upstream_pool *pool, struct event_ref ref, uint32_t events);

/* Calls libcurl when its deadline has come. */
void upstream_pool_tick(struct upstream_pool *pool);

/* A handle whose transfer has ended, with its result, or NULL. The handle has left the pool. */
CURL *upstream_pool_finished(struct upstream_pool *pool, CURLcode *result);

/* Sockets that libcurl opens and closes (CURLOPT_OPENSOCKETFUNCTION): kept account of. */
curl_socket_t upstream_pool_open_socket(struct upstream_pool *pool,
                                        const struct curl_sockaddr *address);
int upstream_pool_close_socket(void *pool, curl_socket_t fd); /* CURLOPT_CLOSESOCKETFUNCTION */

/* True when the idle connection with this local port has something to read, or cannot be found: the
 * upstream has closed it, or is about to. libcurl itself takes a TLS connection whose goodbye lies
 * unread for alive (lib/vtls/openssl.c, ossl_check_cxn). */
bool upstream_pool_is_stale(struct upstream_pool *pool, int local_port);

void upstream_pool_close(struct upstream_pool *pool);

#endif
