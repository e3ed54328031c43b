/* Formats pins, and checks the peer's key against one. BearSSL passes the certificate message in
 * pieces of any size; the decision is made in end_chain, when all of it is there. */
#include "common/net/tls_pin.h"

#include <stdio.h>
#include <string.h>

#include "common/os/secret.h"
#include "common/text/encoding.h"

#define POINT_UNCOMPRESSED 4

void tls_pin_of(const uint8_t point[TLS_POINT_BYTES], uint8_t pin[TLS_PIN_BYTES])
{
    br_sha256_context hash;
    br_sha256_init(&hash);
    br_sha256_update(&hash, point, TLS_POINT_BYTES);
    br_sha256_out(&hash, pin);
}

void tls_pin_format(const uint8_t pin[TLS_PIN_BYTES], char out[TLS_PIN_TEXT_MAX])
{
    static const char kind[] = "sha256:";
    memcpy(out, kind, sizeof(kind) - 1);
    hex_encode(out + sizeof(kind) - 1, pin, TLS_PIN_BYTES);
}

static struct tls_pin_check *check_of(const br_x509_class **class)
{
    return (struct tls_pin_check *)(void *)class;
}

static void start_chain(const br_x509_class **class, const char *server_name)
{
    struct tls_pin_check *check = check_of(class);
    (void)server_name; /* a pinned key needs no name */
    check->length = 0;
    check->certificates = 0;
}

static void start_certificate(const br_x509_class **class, uint32_t length)
{
    (void)length; /* the peer's claim: the bytes are counted instead */
    check_of(class)->certificates++;
}

static void append(const br_x509_class **class, const unsigned char *bytes, size_t length)
{
    struct tls_pin_check *check = check_of(class);
    size_t room = sizeof(check->point) - check->length;
    if (check->length > sizeof(check->point) || length > room) {
        check->length = sizeof(check->point) + 1;
        return;
    }
    memcpy(check->point + check->length, bytes, length);
    check->length += (uint32_t)length;
}

static void end_certificate(const br_x509_class **class)
{
    (void)class;
}

static unsigned end_chain(const br_x509_class **class)
{
    struct tls_pin_check *check = check_of(class);
    uint8_t pin[TLS_PIN_BYTES];
    if (check->certificates != 1 || check->length != sizeof(check->point) ||
        check->point[0] != POINT_UNCOMPRESSED)
        return BR_ERR_X509_NOT_TRUSTED;
    tls_pin_of(check->point, pin);
    if (!secret_equal(pin, check->pin, sizeof(pin)))
        return BR_ERR_X509_NOT_TRUSTED;
    check->key = (br_x509_pkey){
        .key_type = BR_KEYTYPE_EC,
        .key.ec = {.curve = BR_EC_secp256r1, .q = check->point, .qlen = sizeof(check->point)},
    };
    return 0;
}

static const br_x509_pkey *get_key(const br_x509_class *const *class, unsigned *usages)
{
    const struct tls_pin_check *check = (const struct tls_pin_check *)(const void *)class;
    if (usages)
        *usages = BR_KEYTYPE_SIGN;
    return &check->key;
}

static const br_x509_class pin_class = {
    .context_size = sizeof(struct tls_pin_check),
    .start_chain = start_chain,
    .start_cert = start_certificate,
    .append = append,
    .end_cert = end_certificate,
    .end_chain = end_chain,
    .get_pkey = get_key,
};

void tls_pin_check_start(struct tls_pin_check *check, const uint8_t pin[TLS_PIN_BYTES])
{
    *check = (struct tls_pin_check){.vtable = &pin_class};
    memcpy(check->pin, pin, sizeof(check->pin));
}
