/* The broker's side of TLS: its key, and a table of sessions for connections over TCP.
 *
 * The key is made at each start and never stored; its pin (common/net/tls_pin.h) is how the relay
 * recognises this broker. A session is BearSSL's server and a buffer of one full record in each
 * direction; its pages take memory only while its connection is open. The table exists only if
 * there is a listener over TCP.
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
    struct tls_session *sessions; /* NULL without a listener over TCP */
    size_t count;
    uint8_t private_bytes[BR_EC_KBUF_PRIV_MAX_SIZE];
    br_ec_private_key private_key;
    uint8_t point[TLS_POINT_BYTES];
    br_x509_certificate certificate; /* the point */
    char pin[TLS_PIN_TEXT_MAX];      /* "" without a listener over TCP */
};

/* Makes the key and reserves `count` sessions. 0 or a negative errno with a reason. */
int tls_server_open(struct tls_server *server, size_t count, struct failure *why);

/* Starts session `index` for a connection that was just accepted. */
struct tls_link *tls_server_begin(struct tls_server *server, size_t index);

/* Wipes the session and returns its memory. */
void tls_server_finish(struct tls_server *server, size_t index);

void tls_server_close(struct tls_server *server);

#endif
