/* The broker's key and the pin that names it (doc/design.md, "Relay and wire").
 *
 * The broker makes an EC key (P-256) at its start. Its certificate message holds no X.509 but the
 * public point itself, uncompressed: 65 bytes, the first of them 4 (SEC 1, section 2.3.3). The pin
 * is the SHA-256 of those bytes, written `sha256:` and 64 lower-case hex digits. The relay's side
 * of TLS accepts exactly that one "certificate" and takes the key from it; TLS then proves that the
 * peer has the private key (RFC 5246, section 7.4.3). doc/broker-protocol.md has a test vector.
 */
#ifndef COMMON_NET_TLS_PIN_H
#define COMMON_NET_TLS_PIN_H

#include <stdint.h>

#include <bearssl.h>

#define TLS_POINT_BYTES 65
#define TLS_PIN_BYTES 32
#define TLS_PIN_TEXT_MAX 72 /* "sha256:", 64 digits, NUL */

void tls_pin_of(const uint8_t point[TLS_POINT_BYTES], uint8_t pin[TLS_PIN_BYTES]);

void tls_pin_format(const uint8_t pin[TLS_PIN_BYTES], char out[TLS_PIN_TEXT_MAX]);

/* What BearSSL asks about the peer's certificates; a br_x509_class. */
struct tls_pin_check {
    const br_x509_class *vtable; /* first: BearSSL knows the check by its address */
    uint8_t pin[TLS_PIN_BYTES];
    uint8_t point[TLS_POINT_BYTES];
    uint32_t length; /* bytes of the first certificate so far; one too many counts */
    unsigned certificates;
    br_x509_pkey key;
};

/* The one key that will be accepted. */
void tls_pin_check_start(struct tls_pin_check *check, const uint8_t pin[TLS_PIN_BYTES]);

#endif
