/* What codev-init sends to codev-agent: a table of forwards, as fixed-size records on a pipe.
 *
 * The relay reads one record from descriptor 0 when it starts, and later ones when they come: they
 * replace the dial addresses, token and secret of the running table (after a restart of the
 * broker), and the listeners stay. End of file means that init is gone, and the relay ends. Both
 * programs come from one build, so the record is the struct itself, guarded by magic and size. Its
 * secrets are never in arguments, environment or a file.
 *
 * init opens the listeners in the right namespace; the relay inherits them from descriptor 3
 * upwards, in the order of the table. `listen_fd` names them. All are non-blocking.
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
    /* Sends the preface. A client's end of sending means that it left. A client gets a canned 502
     * while the broker cannot be reached. Over TCP with TLS, and `pin` is required. */
    RELAY_TO_BROKER,
    /* Demands the way-in secret, dials the server, and then answers OK\n. */
    RELAY_TO_SERVER,
    /* WSL, outer relay: demands the same, dials the inner relay and sends the secret to it. The
     * inner relay's OK\n passes through. */
    RELAY_TO_AGENT,
    /* WSL, inner relay: to the outer relay's forward to the broker. As RELAY_TO_BROKER, without a
     * preface. */
    RELAY_TO_RELAY,
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
    char secret[SECRET_HEX_LENGTH + 1];     /* token to send, or secret to demand; "" for none */
    char pin[SECRET_HEX_LENGTH + 1]; /* hex SHA-256 of the key of a broker that is dialled over
                                             * TCP; "" otherwise */
};

struct relay_config {
    uint32_t magic, size; /* RELAY_CONFIG_MAGIC, sizeof(struct relay_config) */
    uint32_t forward_count, dns_count;
    struct relay_forward forwards[RELAY_FORWARDS_MAX];
    int32_t dns_fds[RELAY_DNS_MAX]; /* bound UDP sockets and listening TCP sockets of port 53 */
    int32_t route_fd; /* an open /proc/net/route, for forwards that dial tcp:gateway */
};

#endif
