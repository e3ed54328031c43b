/* Unit tests of common/text/format.c: glibc's vsnprintf is the witness. */
#include "common/text/format.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "test/harness/guard.h"

static int ours(char *out, size_t size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = format_text(out, size, format, arguments);
    va_end(arguments);
    return length;
}

#define SAME(...)                                                                                  \
    do {                                                                                           \
        char expected[256], found[256];                                                            \
        int wanted = snprintf(expected, sizeof(expected), __VA_ARGS__);                            \
        assert_int_equal(ours(found, sizeof(found), __VA_ARGS__), wanted);                         \
        assert_string_equal(found, expected);                                                      \
    } while (0)

static void numbers(void **state)
{
    (void)state;
    SAME("%d %i %u", 0, -1, 1u);
    SAME("%d|%d", INT_MIN, INT_MAX);
    SAME("%lld|%lld|%llu", LLONG_MIN, LLONG_MAX, ULLONG_MAX);
    SAME("%ld|%lu|%zu|%zd|%jd|%td", LONG_MIN, ULONG_MAX, SIZE_MAX, (ssize_t)-5, INTMAX_MIN,
         (ptrdiff_t)-7);
    SAME("%hd|%hu|%hhd|%hhu", (short)-3, (unsigned short)65535, (signed char)-1,
         (unsigned char)255);
    SAME("%x|%X|%04x|%8x|%-8x|%02x", 0xbeefu, 0xbeefu, 10u, 0xffu, 0xffu, 0u);
    SAME("%5d|%-5d|%05d|%05d|%.3d|%8.3d|%.0d|%.0d", 42, 42, 42, -42, 7, -7, 0, 3);
    SAME("%*d|%*d|%.*d", 6, 1, -6, 1, 4, 9);
}

static void texts(void **state)
{
    (void)state;
    SAME("plain");
    SAME("%s", "");
    SAME("[%s] [%10s] [%-10s] [%.2s] [%10.2s]", "abc", "abc", "abc", "abc", "abc");
    SAME("%.*s|%.*s|%.*s", 2, "abcdef", 0, "abcdef", -1, "abcdef");
    SAME("%c%c|%3c|%-3c|", 'a', 'b', 'c', 'd');
    SAME("100%% %s", "sure");
}

/* A precision bounds what is read: the text need not end there with a NUL. */
static void reads_no_further(void **state)
{
    char out[16];

    (void)state;
    char *text = guard_copy("wxyz", 4);
    assert_int_equal(ours(out, sizeof(out), "%.4s", text), 4);
    assert_string_equal(out, "wxyz");
    guard_free(text, 4);
}

static void cuts(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 12; size++) {
        char expected[32];
        char *found = guard_alloc(size);
        int wanted = snprintf(expected, size, "%s-%d", "hello", 12345);
        assert_int_equal(ours(found, size, "%s-%d", "hello", 12345), wanted);
        assert_string_equal(found, expected);
        guard_free(found, size);
    }
    assert_int_equal(ours(NULL, 0, "%s", "counted"), 7);
}

static void unknown_is_copied(void **state)
{
    char out[32];
    const char *format = "a %f b %"; /* not checked by the compiler: it is no literal */

    (void)state;
    assert_int_equal(ours(out, sizeof(out), format), 8);
    assert_string_equal(out, "a %f b %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),           cmocka_unit_test(texts),
        cmocka_unit_test(reads_no_further),  cmocka_unit_test(cuts),
        cmocka_unit_test(unknown_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
