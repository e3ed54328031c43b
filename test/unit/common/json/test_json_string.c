/* Unescaping and comparing strings. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "common/json/json.h"
#include "test/harness/guard.h"

static struct json_token tokens[4];

static struct json parse(const char *text)
{
    struct json document;
    struct json_position where;
    assert_int_equal(json_parse(&document, text, strlen(text), tokens, 4, &where), 0);
    return document;
}

static void escapes_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *plain;
    } cases[] = {
        {"\"\"", ""},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac"},
        {"\"\\ud83d\\uDE00x\"", "\xf0\x9f\x98\x80x"},
        {"\"\xf0\x9f\x98\x80\"", "\xf0\x9f\x98\x80"},
        {"\"\\uFFFF\\u007f\"", "\xef\xbf\xbf\x7f"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json document = parse(cases[i].text);
        size_t length = strlen(cases[i].plain);
        char *out = guard_alloc(length + 1);
        assert_int_equal(json_string(&document, 0, out, length + 1), length);
        assert_string_equal(out, cases[i].plain);
        assert_int_equal(json_string(&document, 0, out + 1, length), -ENAMETOOLONG);
        assert_true(json_string_equals(&document, 0, cases[i].plain));
        assert_false(json_string_equals(&document, 0, "A"));
        guard_free(out, length + 1);
    }
}

static void comparing_takes_the_whole_string(void **state)
{
    (void)state;
    struct json document = parse("\"ab\\u20ac\"");
    assert_true(json_string_equals(&document, 0, "ab\xe2\x82\xac"));
    assert_false(json_string_equals(&document, 0, "ab\xe2\x82"));
    assert_false(json_string_equals(&document, 0, "ab"));
    assert_false(json_string_equals(&document, 0, "ab\xe2\x82\xac."));
    assert_false(json_string_equals(&document, 0, ""));
    document = parse("17");
    assert_false(json_string_equals(&document, 0, "17"));
}

static void what_c_strings_cannot_hold_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "\"a\\u0000\"",       "\"\\ud800\"",    "\"\\udc00\"",
        "\"\\ud800\\u0041\"", "\"\\ud800\\n\"", "\"\\ude00\\ud83d\"",
    };
    char out[16];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json document = parse(cases[i]);
        assert_int_equal(json_string(&document, 0, out, sizeof(out)), -EILSEQ);
        assert_false(json_string_equals(&document, 0, "a"));
        assert_false(json_string_equals(&document, 0, ""));
    }
    struct json document = parse("[1]");
    assert_int_equal(json_string(&document, 0, out, sizeof(out)), -EINVAL);
    assert_int_equal(json_string(&document, 1, out, sizeof(out)), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_read),
        cmocka_unit_test(comparing_takes_the_whole_string),
        cmocka_unit_test(what_c_strings_cannot_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
