/* What both ends of TLS between relay and broker agree on (doc/design.md, "Relay and wire"): TLS
 * 1.2 alone, ECDHE on P-256 signed by ECDSA with SHA-256, and one of two suites:
 *
 *     ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
 *         when both ends have AES and carry-less multiplication in hardware (BearSSL uses those of
 *         x86)
 *     ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
 *         otherwise: AES in constant time is slow in software
 *
 * The broker's order of preference counts. There is no resumption (no session is kept), no
 * renegotiation (it is refused after the handshake), and no other version, curve or hash: their
 * code is not linked.
 */
#ifndef COMMON_NET_TLS_PROFILE_H
#define COMMON_NET_TLS_PROFILE_H

#include <stdbool.h>

#include <bearssl.h>

#define TLS_RECORD_MAX 16384 /* plain bytes of a record; RFC 5246, section 6.2.1 */

/* Seeds, once, the generator that seeds every connection: serving then needs no system call for
 * randomness, so the relay's allow list has none. 0 or a negative errno. Without it no handshake
 * succeeds. */
int tls_profile_seed(void);

/* Sets a zeroed engine up, for either end. */
void tls_profile_apply(br_ssl_engine_context *engine);

/* True when this processor offers AES_128_GCM. */
bool tls_profile_has_hardware(void);

#endif
