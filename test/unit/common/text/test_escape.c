/* Escaping: nothing that moves a cursor or reorders text gets through; cuts fall between
 * characters. */
#include "test/harness/unit.h"

#include <string.h>

#include "common/text/escape.h"
#include "test/harness/guard.h"

static const char *escape(const char *text, size_t length, int keep_newlines)
{
    static char out[512];
    char *guarded = guard_copy(text, length);
    size_t written = escape_text(out, sizeof(out), guarded, length, keep_newlines);
    assert_int_equal(strlen(out), written);
    guard_free(guarded, length);
    return out;
}

static void harmless_text_stays(void **state)
{
    (void)state;
    static const char text[] = "plain \\ \"text\" Gr\xc3\xbc\xc3\x9f"
                               "e \xe2\x82\xac \xf0\x9f\x98\x80 ~";
    assert_string_equal(escape(text, strlen(text), 0), text);
    assert_string_equal(escape("", 0, 0), "");
}

static void control_characters_become_bytes(void **state)
{
    (void)state;
    assert_string_equal(escape("\x1b[2J\x07\x7f\x00x", 8, 0), "\\x1b[2J\\x07\\x7f\\x00x");
    assert_string_equal(escape("a\nb\tc\rd", 7, 0), "a\\x0ab\\x09c\\x0dd");
    assert_string_equal(escape("a\nb\tc\rd", 7, 1), "a\nb\tc\\x0dd");
    assert_string_equal(escape("\xc2\x9b"
                               "31m",
                               5, 0),
                        "\\xc2\\x9b31m"); /* C1's CSI */
}

static void reordering_and_separators_become_bytes(void **state)
{
    (void)state;
    static const char *const hostile[] = {
        "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa", "\xe2\x80\xae",
        "\xe2\x81\xa6", "\xe2\x81\xa9", "\xe2\x80\xa8", "\xe2\x80\xa9",
    };
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        const char *out = escape(hostile[i], strlen(hostile[i]), 1);
        assert_int_equal(strlen(out), 4 * strlen(hostile[i]));
        assert_memory_equal(out, "\\x", 2);
    }
    assert_string_equal(escape("\xe2\x80\xa7", 3, 0),
                        "\xe2\x80\xa7"); /* its neighbour is harmless */
}

static void broken_bytes_go_one_by_one(void **state)
{
    (void)state;
    assert_string_equal(escape("\xff"
                               "a\xc3"
                               "b\xe2\x82",
                               6, 0),
                        "\\xffa\\xc3b\\xe2\\x82");
    assert_string_equal(escape("\xed\xa0\x80", 3, 0), "\\xed\\xa0\\x80");
}

static void cuts_between_characters(void **state)
{
    (void)state;
    static const char text[] = "ab\xe2\x82\xac\x1b";
    static const char *const expected[] = {"",
                                           "",
                                           "a",
                                           "ab",
                                           "ab",
                                           "ab",
                                           "ab\xe2\x82\xac",
                                           "ab\xe2\x82\xac",
                                           "ab\xe2\x82\xac",
                                           "ab\xe2\x82\xac",
                                           "ab\xe2\x82\xac\\x1b"};
    for (size_t size = 1; size < sizeof(expected) / sizeof(expected[0]); size++) {
        char *out = guard_alloc(size);
        assert_int_equal(escape_text(out, size, text, strlen(text), 0), strlen(expected[size]));
        assert_string_equal(out, expected[size]);
        guard_free(out, size);
    }
    assert_int_equal(escape_text(NULL, 0, text, strlen(text), 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(harmless_text_stays),
        cmocka_unit_test(control_characters_become_bytes),
        cmocka_unit_test(reordering_and_separators_become_bytes),
        cmocka_unit_test(broken_bytes_go_one_by_one),
        cmocka_unit_test(cuts_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
