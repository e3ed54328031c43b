/* Sets up BearSSL for tls_profile.h, and its random generator. Only the algorithms named here are
 * linked, because BearSSL has one object for each. */
#include "common/net/tls_profile.h"

#include <string.h>

#include "common/os/secret.h"

#define SEED_BYTES 48 /* 256 bits and a nonce: NIST SP 800-90A, section 8.6.7 */

static br_hmac_drbg_context generator;
static bool seeded;

int tls_profile_seed(void)
{
    uint8_t seed[SEED_BYTES];
    int result = secret_random(seed, sizeof(seed));
    if (result < 0)
        return result;
    br_hmac_drbg_init(&generator, &br_sha256_vtable, seed, sizeof(seed));
    secret_wipe(seed, sizeof(seed));
    seeded = true;
    return 0;
}

/* Otherwise BearSSL would open /dev/urandom at the first handshake. */
static void seed_engine(br_ssl_engine_context *engine)
{
    uint8_t seed[SEED_BYTES];
    engine->rng_os_rand_done = 1;
    if (!seeded)
        return;
    br_hmac_drbg_generate(&generator, seed, sizeof(seed));
    br_ssl_engine_inject_entropy(engine, seed, sizeof(seed));
    secret_wipe(seed, sizeof(seed));
}

bool tls_profile_has_hardware(void)
{
    return br_aes_x86ni_ctr_get_vtable() && br_ghash_pclmul_get() != 0;
}

static void set_suites(br_ssl_engine_context *engine)
{
    static const uint16_t suites[] = {
        BR_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        BR_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    };
    if (tls_profile_has_hardware()) {
        br_ssl_engine_set_suites(engine, suites, 2);
        br_ssl_engine_set_gcm(engine, &br_sslrec_in_gcm_vtable, &br_sslrec_out_gcm_vtable);
        br_ssl_engine_set_aes_ctr(engine, br_aes_x86ni_ctr_get_vtable());
        br_ssl_engine_set_ghash(engine, br_ghash_pclmul_get());
    } else {
        br_ssl_engine_set_suites(engine, suites + 1, 1);
    }
    br_ssl_engine_set_chapol(engine, &br_sslrec_in_chapol_vtable, &br_sslrec_out_chapol_vtable);
    br_ssl_engine_set_chacha20(engine, &br_chacha20_ct_run);
    br_ssl_engine_set_poly1305(engine, br_poly1305_ctmulq_get());
}

void tls_profile_apply(br_ssl_engine_context *engine)
{
    br_ssl_engine_set_versions(engine, BR_TLS12, BR_TLS12);
    br_ssl_engine_add_flags(engine, BR_OPT_NO_RENEGOTIATION | BR_OPT_ENFORCE_SERVER_PREFERENCES);
    set_suites(engine);
    br_ssl_engine_set_hash(engine, br_sha256_ID, &br_sha256_vtable);
    br_ssl_engine_set_prf_sha256(engine, &br_tls12_sha256_prf);
    br_ssl_engine_set_ec(engine, &br_ec_p256_m31);
    br_ssl_engine_set_ecdsa(engine, &br_ecdsa_i31_vrfy_asn1);
    seed_engine(engine);
}
