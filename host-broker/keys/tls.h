/* The broker's end of TLS: its key, and a session for each connection over TCP, in fixed memory.
 *
 * The key is made at the start and dies with the process; nothing else proves that who answers at the
 * port is this broker (common/net/tls_pin.h). A session is BearSSL's server and a buffer of one record of full
 * size in each direction: pages that the kernel gives once they are touched and that go back at the end.
 * The table exists only when there is a listener over TCP.
 */
#ifndef HOST_BROKER_KEYS_TLS_H
#define HOST_BROKER_KEYS_TLS_H

#include <stddef.h>
#include <stdint.h>

#include "common/net/tls_link.h"
#include "common/net/tls_pin.h"
#include "common/os/failure.h"

struct tls_session;

struct tls_server {
    struct tls_session *sessions; /* NULL: no TLS here */
    size_t count;
    uint8_t private_bytes[BR_EC_KBUF_PRIV_MAX_SIZE];
    br_ec_private_key private_key;
    uint8_t point[TLS_POINT_BYTES];
    br_x509_certificate certificate; /* the point */
    char pin[TLS_PIN_TEXT_MAX];      /* "" without TLS */
};

/* Makes the key and reserves `count` sessions. 0 or a negative errno with a reason. */
int tls_server_open(struct tls_server *server, size_t count, struct failure *why);

/* Session `index` starts anew, for a connection that was just accepted. */
struct tls_link *tls_server_begin(struct tls_server *server, size_t index);

/* Wipes it and gives its memory back. */
void tls_server_finish(struct tls_server *server, size_t index);

void tls_server_close(struct tls_server *server);

#endif
