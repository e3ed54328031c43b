/* The TLS code of the relay and of the broker, joined by a wire on which the test moves the bytes.
 */
#ifndef TEST_HARNESS_TLS_PAIR_H
#define TEST_HARNESS_TLS_PAIR_H

#include "agent/tls.h"
#include "common/net/tls_link.h"
#include "host-broker/keys/tls.h"

enum way { UP, DOWN }; /* to the broker, to the relay */

struct pair {
    struct connection connection;
    struct relay_forward forward;
    struct tls_link *relay, *broker;
    int relay_fd, broker_fd;
    int wire[2];      /* the wire's ends: at the relay, at the broker */
    size_t passed[2]; /* bytes so far */
    size_t limit[2];  /* bytes after this many are held back */
    size_t spoiled;   /* 1 + index of the byte to corrupt towards the relay; 0: none */
};

extern struct tls_server pair_server; /* opened once by the test */
extern br_ssl_client_context *pair_client(struct pair *pair);

/* Makes two ends that have not exchanged a byte. */
void pair_open(struct pair *pair);
void pair_close(struct pair *pair);

/* Moves the bytes that are there and may pass; returns how many. */
size_t pair_pass(struct pair *pair, enum way way);

/* Moves bytes and continues both handshakes until nothing more happens. */
void pair_shake_hands(struct pair *pair);

/* Makes two ends and completes the handshake. */
void pair_establish(struct pair *pair);

/* Closes the wire towards one side, as a broken network does. */
void pair_cut(struct pair *pair, enum way way);

#endif
