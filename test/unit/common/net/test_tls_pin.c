/* Pins: the vector of doc/broker-protocol.md, and what is and is not the pinned key, in pieces of
 * any size. */
#include "test/harness/unit.h"

#include <string.h>

#include "common/net/tls_pin.h"
#include "common/text/encoding.h"

/* The base point of P-256 (SEC 2, section 2.4.2). */
#define POINT                                                                                      \
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"                           \
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
#define PIN "698bea63dc44a344663ff1429aea10842df27b6b991ef25866b2c6c02cdcc5be"

static uint8_t point[TLS_POINT_BYTES], pin[TLS_PIN_BYTES];

static int read_vector(void **state)
{
    (void)state;
    if (hex_decode(point, sizeof(point), POINT, strlen(POINT)) < 0)
        return -1;
    tls_pin_of(point, pin);
    return 0;
}

static void the_vector(void **state)
{
    (void)state;
    char text[TLS_PIN_TEXT_MAX];
    tls_pin_format(pin, text);
    assert_string_equal(text, "sha256:" PIN);
}

static void give(struct tls_pin_check *check, const uint8_t *bytes, size_t length, size_t split)
{
    const br_x509_class **class = &check->vtable;
    check->vtable->start_cert(class, (uint32_t)length);
    for (size_t at = 0; at < length; at += split)
        check->vtable->append(class, bytes + at, length - at < split ? length - at : split);
    check->vtable->end_cert(class);
}

/* The status of a chain of one certificate. */
static unsigned verdict_on(const uint8_t *bytes, size_t length, size_t split)
{
    struct tls_pin_check check;
    tls_pin_check_start(&check, pin);
    check.vtable->start_chain(&check.vtable, NULL);
    give(&check, bytes, length, split);
    return check.vtable->end_chain(&check.vtable);
}

static void the_key_is_taken_in_pieces_of_any_size(void **state)
{
    (void)state;
    for (size_t split = 1; split <= sizeof(point); split++)
        assert_int_equal(verdict_on(point, sizeof(point), split), 0);
    struct tls_pin_check check;
    unsigned usages = 0;
    tls_pin_check_start(&check, pin);
    check.vtable->start_chain(&check.vtable, "name");
    give(&check, point, sizeof(point), 7);
    assert_int_equal(check.vtable->end_chain(&check.vtable), 0);
    const br_x509_class *const *class = &check.vtable;
    const br_x509_pkey *key = check.vtable->get_pkey(class, &usages);
    assert_int_equal(usages, BR_KEYTYPE_SIGN);
    assert_int_equal(key->key_type, BR_KEYTYPE_EC);
    assert_int_equal(key->key.ec.curve, BR_EC_secp256r1);
    assert_int_equal(key->key.ec.qlen, sizeof(point));
    assert_memory_equal(key->key.ec.q, point, sizeof(point));
}

static void another_key_is_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8 * sizeof(point); i++) { /* every bit matters */
        uint8_t other[TLS_POINT_BYTES];
        memcpy(other, point, sizeof(other));
        other[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(verdict_on(other, sizeof(other), 64), BR_ERR_X509_NOT_TRUSTED);
    }
}

static void another_length_is_none(void **state)
{
    (void)state;
    uint8_t longer[300] = {0};
    memcpy(longer, point, sizeof(point));
    for (size_t length = 0; length <= sizeof(longer); length++)
        for (size_t split = 1; split < 80; split += 13)
            if (length != sizeof(point))
                assert_int_equal(verdict_on(longer, length, split), BR_ERR_X509_NOT_TRUSTED);
}

/* Bytes that are not an uncompressed point are refused even when the pin is theirs. */
static void another_form_is_none(void **state)
{
    (void)state;
    uint8_t other[TLS_POINT_BYTES];
    struct tls_pin_check check;
    memcpy(other, point, sizeof(other));
    other[0] = 2;
    uint8_t others_pin[TLS_PIN_BYTES];
    tls_pin_of(other, others_pin);
    tls_pin_check_start(&check, others_pin);
    check.vtable->start_chain(&check.vtable, NULL);
    give(&check, other, sizeof(other), 65);
    assert_int_equal(check.vtable->end_chain(&check.vtable), BR_ERR_X509_NOT_TRUSTED);
}

static void a_chain_is_none(void **state)
{
    (void)state;
    struct tls_pin_check check;
    tls_pin_check_start(&check, pin);
    check.vtable->start_chain(&check.vtable, NULL);
    assert_int_equal(check.vtable->end_chain(&check.vtable), BR_ERR_X509_NOT_TRUSTED); /* empty */
    give(&check, point, sizeof(point), 65);
    give(&check, (const uint8_t *)"", 0, 1); /* the second certificate is empty */
    assert_int_equal(check.vtable->end_chain(&check.vtable), BR_ERR_X509_NOT_TRUSTED);
    check.vtable->start_chain(&check.vtable, NULL); /* in two halves */
    give(&check, point, 32, 65);
    give(&check, point + 32, 33, 65);
    assert_int_equal(check.vtable->end_chain(&check.vtable), BR_ERR_X509_NOT_TRUSTED);
    check.vtable->start_chain(&check.vtable, NULL); /* bytes of an earlier chain do not count */
    give(&check, point, sizeof(point), 65);
    assert_int_equal(check.vtable->end_chain(&check.vtable), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vector),
        cmocka_unit_test(the_key_is_taken_in_pieces_of_any_size),
        cmocka_unit_test(another_key_is_none),
        cmocka_unit_test(another_length_is_none),
        cmocka_unit_test(another_form_is_none),
        cmocka_unit_test(a_chain_is_none),
    };
    return cmocka_run_group_tests(tests, read_vector, NULL);
}
