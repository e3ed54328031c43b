/* The broker's key and its TLS sessions with BearSSL. */
#include "host-broker/keys/tls.h"

#include <errno.h>
#include <string.h>

#include "common/os/memory.h"
#include "common/os/secret.h"

#define PAGE 4096

struct tls_session {
    br_ssl_server_context server;
    struct tls_link link;
    uint8_t input[BR_SSL_BUFSIZE_INPUT] __attribute__((aligned(PAGE)));
    uint8_t output[BR_SSL_BUFSIZE_OUTPUT] __attribute__((aligned(PAGE)));
} __attribute__((aligned(PAGE)));

static int make_key(struct tls_server *server)
{
    uint8_t seed[SECRET_BYTES], buffer[BR_EC_KBUF_PUB_MAX_SIZE], pin[TLS_PIN_BYTES];
    br_hmac_drbg_context generator;
    br_ec_public_key public_key;
    int result = secret_random(seed, sizeof(seed));
    if (result < 0)
        return result;
    br_hmac_drbg_init(&generator, &br_sha256_vtable, seed, sizeof(seed));
    secret_wipe(seed, sizeof(seed));
    size_t private_length = br_ec_keygen(&generator.vtable, &br_ec_p256_m31, &server->private_key,
                                         server->private_bytes, BR_EC_secp256r1);
    secret_wipe(&generator, sizeof(generator));
    if (private_length == 0 || br_ec_compute_pub(&br_ec_p256_m31, &public_key, buffer,
                                                 &server->private_key) != TLS_POINT_BYTES)
        return -EIO; /* impossible: the curve is built in */
    memcpy(server->point, public_key.q, TLS_POINT_BYTES);
    server->certificate = (br_x509_certificate){server->point, TLS_POINT_BYTES};
    tls_pin_of(server->point, pin);
    tls_pin_format(pin, server->pin);
    return 0;
}

int tls_server_open(struct tls_server *server, size_t count, struct failure *why)
{
    int result = tls_profile_seed();
    if (result == 0)
        result = make_key(server);
    if (result < 0)
        return failure_errno(why, -result, "make a key for TLS");
    server->sessions = memory_reserve(count * sizeof(struct tls_session));
    if (!server->sessions)
        return failure_set(why, ENOMEM, "reserve %zu sessions of TLS", count);
    server->count = count;
    return 0;
}

struct tls_link *tls_server_begin(struct tls_server *server, size_t index)
{
    struct tls_session *session = &server->sessions[index];
    br_ssl_engine_context *engine = &session->server.eng;
    br_ssl_server_zero(&session->server);
    tls_profile_apply(engine);
    br_ssl_server_set_single_ec(&session->server, &server->certificate, 1, &server->private_key,
                                BR_KEYTYPE_SIGN, BR_KEYTYPE_EC, &br_ec_p256_m31,
                                &br_ecdsa_i31_sign_asn1);
    br_ssl_engine_set_buffers_bidi(engine, session->input, sizeof(session->input), session->output,
                                   sizeof(session->output));
    br_ssl_server_reset(&session->server); /* a failure shows as a failed handshake */
    tls_link_start(&session->link, engine);
    return &session->link;
}

void tls_server_finish(struct tls_server *server, size_t index)
{
    struct tls_session *session = &server->sessions[index];
    secret_wipe(&session->server, sizeof(session->server));
    memory_discard(session, sizeof(*session));
}

void tls_server_close(struct tls_server *server)
{
    if (server->sessions)
        memory_free(server->sessions, server->count * sizeof(*server->sessions));
    secret_wipe(server, sizeof(*server));
}
