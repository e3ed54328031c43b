/* What codev-init tells codev-agent: a table of forwards, as fixed-size records on a pipe.
 *
 * The agent reads one record from descriptor 0 when it starts and keeps watching: a further record
 * replaces dial addresses, token and secret of the running table (a restarted broker) while the
 * listeners stay; end of file means that init is gone, and the agent ends. Both programs come from
 * one build, so the record is the struct itself, guarded by magic and size. The secrets in it reach
 * no argv, environment or file.
 *
 * Listeners are made by init in the right namespace and inherited, from descriptor 3 upwards, in
 * the order of the table; `listen_fd` names them. All are non-blocking.
 */
#ifndef COMMON_WIRE_RELAY_CONFIG_H
#define COMMON_WIRE_RELAY_CONFIG_H

#include <stdint.h>

#include "common/net/endpoint.h"
#include "common/os/secret.h"

#define RELAY_CONFIG_MAGIC 0x52564443u /* "CDVR" */
#define RELAY_FORWARDS_MAX 8
#define RELAY_DIALS_MAX 4
#define RELAY_DNS_MAX 4
#define RELAY_CONNECTIONS_MAX 512

enum relay_role {
    RELAY_TO_BROKER, /* says the preface; a client's end of sending means that it has left; canned 502
                      * while the broker cannot be reached. Over TCP: TLS, and `pin` is needed */
    RELAY_TO_SERVER, /* demands the way-in secret, then dials the server, then answers OK\n */
    RELAY_TO_AGENT, /* WSL, outer agent: demands the same, dials the inner agent and repeats the secret to
                      * it, whose OK\n passes through */
    RELAY_TO_RELAY, /* WSL, inner agent: to the outer one's forward to the broker. As RELAY_TO_BROKER, but
                      * nothing is said first */
    RELAY_ROLE_COUNT
};

struct relay_forward {
    int32_t listen_fd;
    uint32_t role;       /* enum relay_role */
    uint32_t half_close; /* pass on the end of one side's sending */
    uint32_t framed;     /* RELAY_TO_SERVER: the client speaks in pieces (common/wire/piece.h); with
                          * half_close */
    uint32_t dial_count;
    struct endpoint dials[RELAY_DIALS_MAX]; /* tried in order; the one that worked is kept */
    char secret[SECRET_HEX_LENGTH + 1];     /* token to say, or secret to demand; "" for none */
    char pin[SECRET_HEX_LENGTH + 1]; /* hex of the pinned key's SHA-256, where a broker is dialled
                                             * over TCP; "" elsewhere */
};

struct relay_config {
    uint32_t magic, size; /* RELAY_CONFIG_MAGIC, sizeof(struct relay_config) */
    uint32_t forward_count, dns_count;
    struct relay_forward forwards[RELAY_FORWARDS_MAX];
    int32_t dns_fds[RELAY_DNS_MAX]; /* bound UDP sockets and listening TCP sockets of port 53 */
    int32_t
        route_fd; /* an open /proc/net/route, for tcp:gateway; looked at only where that is dialled */
};

#endif
