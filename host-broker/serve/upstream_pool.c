/* libcurl's sockets and timers in the event loop, and the check of idle connections. */
#include "host-broker/serve/upstream_pool_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/io.h"

static struct upstream_socket *find_socket(struct upstream_pool *pool, int fd)
{
    for (unsigned i = 0; i < pool->socket_count; i++)
        if (pool->sockets[i].fd == fd)
            return &pool->sockets[i];
    return NULL;
}

/* CURLMOPT_SOCKETFUNCTION: what to watch a socket for. libcurl has a socket unwatched between two
 * requests and before it closes it; in both cases the watch is parked. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *watched)
{
    struct upstream_pool *pool = user;
    struct event_ref ref = {.source = EVENT_UPSTREAM, .pool = pool->number, .index = (uint32_t)fd};
    uint32_t events =
        (what & CURL_POLL_IN ? EVENT_READABLE : 0) | (what & CURL_POLL_OUT ? EVENT_WRITABLE : 0);
    (void)easy, (void)watched;
    if (what == CURL_POLL_REMOVE) {
        event_loop_park(pool->loop, fd);
        return 0;
    }
    return event_loop_watch(pool->loop, fd, events, ref) == 0 ? 0 : -1;
}

/* Counted from now, not from the wake-up: libcurl reads its own clock and does nothing when it is
 * called too early. A time-out of 0 is due at once. */
static void set_timer(struct upstream_pool *pool, long timeout_ms)
{
    if (timeout_ms == 0)
        pool->deadline = pool->loop->now;
    else
        pool->deadline = timeout_ms < 0 ? NEVER : io_monotonic_ns() + timeout_ms * MILLISECONDS;
}

static int on_timer(CURLM *multi, long timeout_ms, void *user)
{
    (void)multi;
    set_timer(user, timeout_ms);
    return 0;
}

int upstream_pool_open(struct upstream_pool *pool, struct event_loop *loop, unsigned number,
                       struct failure *why)
{
    *pool = (struct upstream_pool){.loop = loop, .number = number, .deadline = NEVER};
    pool->multi = curl_multi_init();
    pool->share = curl_share_init();
    if (!pool->multi || !pool->share)
        return failure_set(why, ENOMEM, "start libcurl");
    curl_share_setopt(pool->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, (long)UPSTREAM_CONNECTIONS_KEPT);
    curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    return 0;
}

void upstream_pool_ready(struct upstream_pool *pool, struct event_ref ref, uint32_t events)
{
    int fd = (int)ref.index;
    if (!event_loop_is_wanted(pool->loop, fd, ref.stamp))
        return; /* libcurl checks the connection itself before it uses it again */
    int running, mask = (events & EVENT_READABLE ? CURL_CSELECT_IN : 0) |
                        (events & EVENT_WRITABLE ? CURL_CSELECT_OUT : 0) |
                        (events & EVENT_BROKEN ? CURL_CSELECT_ERR : 0);
    curl_multi_socket_action(pool->multi, fd, mask, &running);
}

void upstream_pool_tick(struct upstream_pool *pool)
{
    int running;
    long left_ms;
    if (pool->deadline > pool->loop->now)
        return;
    curl_multi_socket_action(pool->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    /* on_timer is not called again for a deadline that it was told before: if this call came too
     * early for libcurl, nothing else would set the timer (lib/multi.c, Curl_update_timer) */
    if (curl_multi_timeout(pool->multi, &left_ms) == CURLM_OK)
        set_timer(pool, left_ms);
}

CURL *upstream_pool_finished(struct upstream_pool *pool, CURLcode *result)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(pool->multi, &left));) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURL *easy = message->easy_handle;
        *result = message->data.result; /* read first: the removal frees the message */
        curl_multi_remove_handle(pool->multi, easy);
        return easy;
    }
    return NULL;
}

curl_socket_t upstream_pool_open_socket(struct upstream_pool *pool,
                                        const struct curl_sockaddr *address)
{
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    /* some sockets are closed without a call: a known number was reused */
    struct upstream_socket *ours = find_socket(pool, fd);
    if (!ours && pool->socket_count < UPSTREAM_SOCKETS_MAX)
        ours = &pool->sockets[pool->socket_count++];
    if (ours)
        *ours = (struct upstream_socket){.fd = fd, .local_port = -1};
    return fd;
}

int upstream_pool_close_socket(void *user, curl_socket_t fd)
{
    struct upstream_pool *pool = user;
    struct upstream_socket *ours = find_socket(pool, fd);
    if (ours)
        *ours = pool->sockets[--pool->socket_count];
    return close(fd);
}

static int local_port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return -1;
    if (address.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&address)->sin_port);
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return -1;
}

/* The local port of each socket is read once, because reading all of them for each request would
 * cost more than the rest of the request. That of the socket that is found is read again: its
 * number may have been reused. */
bool upstream_pool_is_stale(struct upstream_pool *pool, int local_port)
{
    for (unsigned i = 0; i < pool->socket_count; i++) {
        struct upstream_socket *ours = &pool->sockets[i];
        char byte;
        if (ours->local_port <= 0)
            ours->local_port = local_port_of(ours->fd);
        if (ours->local_port != local_port)
            continue;
        ours->local_port = local_port_of(ours->fd);
        if (ours->local_port == local_port)
            return recv(ours->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
    }
    return true;
}

bool upstream_pool_has_unread_tls(CURL *easy)
{
    const struct curl_tlssessioninfo *tls = NULL;
    return curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &tls) == CURLE_OK && tls &&
           tls->backend == CURLSSLBACKEND_OPENSSL && tls->internals &&
           SSL_has_pending(tls->internals) == 1;
}

void upstream_pool_close(struct upstream_pool *pool)
{
    curl_multi_cleanup(pool->multi);
    curl_share_cleanup(pool->share);
}
