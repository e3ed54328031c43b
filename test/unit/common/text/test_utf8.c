/* UTF-8: the borders of each row of RFC 3629's table, and every cut. */
#include "test/harness/unit.h"

#include "common/text/utf8.h"
#include "test/harness/guard.h"

static size_t decode(const char *bytes, size_t length, uint32_t *code)
{
    char *guarded = guard_copy(bytes, length);
    size_t taken = utf8_decode(guarded, length, code);
    guard_free(guarded, length);
    return taken;
}

static void accepts_every_scalar_value(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code <= 0xdfff)
            continue;
        char bytes[UTF8_LENGTH_MAX];
        size_t length = utf8_encode(bytes, code);
        uint32_t back = 0;
        assert_int_equal(utf8_decode(bytes, length, &back), length);
        assert_int_equal(back, code);
    }
}

static void refuses_what_is_no_character(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "\x80",         "\xbf",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff",         "\xc3\x28",     "\xe2\x82\x28",     "\xf0\x9f\x98\x28", "\xe2\x28\xa1",
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        uint32_t code = 77;
        assert_int_equal(decode(broken[i], strlen(broken[i]), &code), 0);
        assert_int_equal(code, 77);
    }
}

static void refuses_a_cut_character(void **state)
{
    (void)state;
    static const char *const whole[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < 3; i++) {
        uint32_t code;
        size_t length = strlen(whole[i]);
        assert_int_equal(decode(whole[i], length, &code), length);
        for (size_t cut = 1; cut < length; cut++)
            assert_int_equal(decode(whole[i], cut, &code), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_every_scalar_value),
        cmocka_unit_test(refuses_what_is_no_character),
        cmocka_unit_test(refuses_a_cut_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
