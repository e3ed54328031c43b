/* The state of the whole broker: main() sets it up step by step, the engine runs it.
 *
 * There is one event loop and one thread, apart from libcurl's for name resolution. A connection
 * from the sandbox carries one request at a time; while its upstream is asked it has an exchange,
 * of which there are at most --max-requests. Handlers of events change the state of a connection
 * and mark it. Once per wake-up the engine settles every marked connection: it sends, goes through
 * the states, updates what is watched, and frees. So a later event of the same wake-up never meets
 * a freed object.
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
#include "host-broker/serve/upstream_pool_internal.h"

struct connection;
struct exchange;

struct broker {
    struct broker_options options;
    struct rules rules;
    struct credential credential;
    bool logged_in;     /* as last reported */
    int64_t login_seen; /* loop.now at the last check; 0: never */
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
    int64_t crowded_until; /* at UNAUTHENTICATED_MAX: until then no connection may be evicted */
    int64_t drain_until;   /* NEVER until SIGTERM */
    bool ended;
};

static inline bool broker_is_draining(const struct broker *broker)
{
    return broker->drain_until != NEVER;
}

/* Checks the login and reports a change: at most once per wake-up, unless `always`. */
bool broker_logged_in(struct broker *broker, bool always);

/* A warning on standard error and as an event. */
void broker_warn(struct broker *broker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
