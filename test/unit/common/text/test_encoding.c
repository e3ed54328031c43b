/* Base64 and hexadecimal: RFC 4648's vectors, round trips of every length, and one text per value.
 */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/encoding.h"
#include "test/harness/guard.h"

static const struct {
    const char *plain, *encoded;
} vectors[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xff\xff\xfe", "///+"},
};

static void base64_knows_the_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        size_t plain = strlen(vectors[i].plain), encoded = strlen(vectors[i].encoded);
        char *out = guard_alloc(encoded);
        assert_int_equal(BASE64_LENGTH(plain), encoded);
        assert_int_equal(base64_encode(out, vectors[i].plain, plain), encoded);
        assert_memory_equal(out, vectors[i].encoded, encoded);
        char *back = guard_alloc(plain);
        assert_int_equal(base64_decode(back, plain, out, encoded), plain);
        assert_memory_equal(back, vectors[i].plain, plain);
        guard_free(back, plain);
        guard_free(out, encoded);
    }
}

static void base64_round_trips_in_place(void **state)
{
    (void)state;
    for (size_t length = 0; length < 200; length++) {
        uint8_t bytes[200];
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)(i * 37 + length);
        size_t encoded = BASE64_LENGTH(length);
        char *text = guard_alloc(encoded);
        base64_encode(text, bytes, length);
        assert_int_equal(base64_decode(text, encoded, text, encoded), length);
        assert_memory_equal(text, bytes, length);
        guard_free(text, encoded);
    }
}

static void base64_refuses_other_texts(void **state)
{
    (void)state;
    static const char *const wrong[] = {"Z",
                                        "Zg",
                                        "Zg=",
                                        "Zh==",
                                        "Zm9=",
                                        "====",
                                        "=Zg=",
                                        "Zg=a",
                                        "Z===",
                                        "Zm9 ",
                                        "Zm9\n",
                                        "Zm_9",
                                        "Zm-9",
                                        "Zg==Zg==",
                                        "Zm9v\n",
                                        "Zg=="
                                        "="};
    uint8_t out[16];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(base64_decode(out, sizeof(out), wrong[i], strlen(wrong[i])), -EINVAL);
    assert_int_equal(base64_decode(out, 5, "Zm9vYmFy", 8), -ENOSPC);
    assert_int_equal(base64_decode(out, 6, "Zm9vYmFy", 8), 6);
}

static void hex_round_trips(void **state)
{
    (void)state;
    uint8_t bytes[256], back[256];
    char text[513];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    hex_encode(text, bytes, sizeof(bytes));
    assert_int_equal(strlen(text), 512);
    assert_memory_equal(text, "000102", 6);
    assert_int_equal(hex_decode(back, sizeof(back), text, 512), 0);
    assert_memory_equal(back, bytes, 256);
}

static void hex_refuses_other_texts(void **state)
{
    (void)state;
    uint8_t out[2] = {1, 2};
    assert_int_equal(hex_decode(out, 2, "00ff0", 5), -EINVAL);
    assert_int_equal(hex_decode(out, 2, "00ff00", 6), -EINVAL);
    assert_int_equal(hex_decode(out, 2, "00fF", 4), -EINVAL);
    assert_int_equal(hex_decode(out, 2, "00fg", 4), -EINVAL);
    assert_int_equal(hex_decode(out, 2, "0x00", 4), -EINVAL);
    assert_int_equal(out[0], 1); /* untouched on failure */
    assert_int_equal(out[1], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_knows_the_vectors),   cmocka_unit_test(base64_round_trips_in_place),
        cmocka_unit_test(base64_refuses_other_texts), cmocka_unit_test(hex_round_trips),
        cmocka_unit_test(hex_refuses_other_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
