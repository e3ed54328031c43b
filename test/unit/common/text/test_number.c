/* Unsigned numbers in texts: the value, the text behind it, and texts without a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/text/number.h"

static void reads(const char *text, unsigned base, uint32_t expected, const char *rest)
{
    uint32_t value = 77;
    const char *end = number_read(text, base, &value);

    assert_non_null(end);
    assert_int_equal(value, expected);
    assert_string_equal(end, rest);
}

static void refuses(const char *text, unsigned base)
{
    uint32_t value = 77;

    assert_null(number_read(text, base, &value));
    assert_int_equal(value, 77);
}

static void numbers_and_what_follows(void **state)
{
    (void)state;
    reads("0", 10, 0, "");
    reads("4294967295", 10, UINT32_MAX, "");
    reads("0004096 more", 10, 4096, " more");
    reads("12ab", 10, 12, "ab");
    reads("0100007F\t", 16, 0x0100007f, "\t");
    reads("ffffffff", 16, UINT32_MAX, "");
    reads("aBcDg", 16, 0xabcd, "g");
}

static void no_numbers(void **state)
{
    (void)state;
    refuses("", 10);
    refuses(" 1", 10);
    refuses("-1", 10);
    refuses("+1", 10);
    refuses("a", 10);
    refuses("g", 16);
    refuses("4294967296", 10);
    refuses("100000000", 16);
    refuses("18446744073709551617", 10); /* 2^64 + 1 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_what_follows),
        cmocka_unit_test(no_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
