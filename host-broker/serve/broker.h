/* The broker as a whole: what main() sets up, step by step, and the engine runs.
 *
 * One thread (but for libcurl's name resolution), one event loop. A connection from the sandbox carries
 * one request at a time; while its upstream is asked it has an exchange, of which there are at most
 * --max-requests. Handlers of events change the state of a connection and mark it; once per wake-up the
 * engine settles every marked connection: sends, goes on in its states, adjusts what is watched, and
 * frees. So a late event of the same wake-up never meets a freed object.
 */
#ifndef HOST_BROKER_SERVE_BROKER_H
#define HOST_BROKER_SERVE_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/os/secret.h"
#include "host-broker/base/buffer.h"
#include "host-broker/base/event_loop.h"
#include "host-broker/config/options.h"
#include "host-broker/http/header_policy.h"
#include "host-broker/keys/credential.h"
#include "host-broker/keys/tls.h"
#include "host-broker/keys/trust.h"
#include "host-broker/proxy/proxy_table.h"
#include "host-broker/rules/rules.h"
#include "host-broker/serve/access_log.h"
#include "host-broker/serve/listener.h"
#include "host-broker/serve/upstream_pool.h"

#define UNAUTHENTICATED_MAX 64 /* beyond, the oldest of them makes way for the next */
#define STRANGER_GRACE                                                                             \
    (3 * SECONDS) /* but not younger than this, an emulated guest is slow: the next one waits */
#define ACCEPT_PER_WAKE_UP 64
#define ACCEPT_PAUSE (200 * MILLISECONDS) /* when descriptors have run out */
#define HEAD_TIMEOUT (30 * SECONDS)       /* of a request, from its first byte */
#define LINGER_TIMEOUT (5 * SECONDS)      /* reading on after a last answer, so that it is seen */
#define STRANGER_LINGER_TIMEOUT (1 * SECONDS) /* the same without the token */
#define DRAIN_TIMEOUT (10 * SECONDS)          /* after SIGTERM */
#define CONNECT_TIMEOUT_MS 10000L             /* name, connection and TLS together */
#define KEPT_FOR_UNSAFE_SECONDS                                                                    \
    2L /* how old a kept connection may be to carry what cannot be sent twice */

struct connection;
struct exchange;

struct broker {
    struct broker_options options;
    struct rules rules;
    struct credential credential;
    bool logged_in;     /* as last reported */
    int64_t login_seen; /* loop.now when it was last looked at; 0: never */
    struct trust trust;
    struct proxy_table proxies;
    bool proxy_trouble; /* as last reported */
    struct access_log log;
    char token[SECRET_HEX_LENGTH + 1];

    struct event_loop loop;
    int requests;  /* to end or to reload: process.h */
    bool lifeline; /* standard input is watched */
    struct buffer_pool buffers;
    struct tls_server tls; /* with a listener over TCP */
    struct listener listeners[OPTIONS_LISTENERS_MAX];
    size_t listener_count;
    struct upstream_pool pools[ROUTE_KIND_COUNT];

    struct connection *connections; /* table of options.max_connections */
    struct connection *unused_connections, *marked;
    unsigned connection_count, unauthenticated;
    struct exchange *exchanges; /* table of options.max_requests */
    struct exchange *unused_exchanges;
    CURLU **origins; /* for libcurl: the gateway's, then each rule's */

    int64_t next_deadline; /* no connection has an earlier one */
    int64_t accept_again;  /* NEVER unless accepting is paused */
    int64_t crowded_until; /* while all places for strangers are taken: when the first may go */
    int64_t drain_until;   /* NEVER until SIGTERM */
    bool ended;
};

static inline bool broker_is_draining(const struct broker *broker)
{
    return broker->drain_until != NEVER;
}

/* Looks at the login and reports a change of it: once in a wake-up, unless `always`. */
bool broker_logged_in(struct broker *broker, bool always);

/* A line for the person or app who runs the broker: on standard error and as an event. */
void broker_warn(struct broker *broker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
