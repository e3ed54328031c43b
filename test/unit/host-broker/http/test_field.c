/* Characters of field lines against the RFC's own lists, comma-separated lists, and an upstream's
 * lines. */
#include "test/harness/unit.h"

#include <errno.h>

#include "host-broker/http/field.h"
#include "test/harness/guard.h"

static void byte_classes_are_those_of_the_rfc(void **state)
{
    (void)state;
    static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int byte = 0; byte < 256; byte++) {
        bool is_token = byte != 0 && strchr(token, byte);
        assert_int_equal(field_is_token_byte((unsigned char)byte), is_token);
        bool is_value = byte == '\t' || (byte >= ' ' && byte != 0x7f);
        assert_int_equal(field_is_value_byte((unsigned char)byte), is_value);
    }
    assert_false(field_is_token((struct slice){NULL, 0}));
    assert_true(field_is_token(SLICE_LITERAL("M-SEARCH")));
    assert_false(field_is_token(SLICE_LITERAL("a b")));
}

static void lists_are_walked(void **state)
{
    (void)state;
    struct slice rest = SLICE_LITERAL(" , a,\tb c ,, ,d, "), element;
    static const char *const expected[] = {"a", "b c", "d"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(field_list_next(&rest, &element));
        assert_true(slice_equal(element, slice_of(expected[i])));
    }
    assert_false(field_list_next(&rest, &element));
    assert_true(field_list_has(SLICE_LITERAL("close, Keep-ALIVE"), SLICE_LITERAL("keep-alive")));
    assert_false(field_list_has(SLICE_LITERAL("closed"), SLICE_LITERAL("close")));
    assert_false(field_list_has((struct slice){NULL, 0}, SLICE_LITERAL("close")));
}

static int parse(const char *text, size_t length, struct field *out, char **guarded)
{
    *guarded = guard_copy(text, length);
    return field_parse_line((struct slice){*guarded, length}, out);
}

static void lines_are_split(void **state)
{
    (void)state;
    static const struct {
        const char *line, *name, *value;
    } cases[] = {
        {"Location: /x\r\n", "Location", "/x"},
        {"a:b", "a", "b"},
        {"a: \t b c \t\r\n", "a", "b c"},
        {"a:\n", "a", ""},
        {"a:b:c\r\n", "a", "b:c"},
        {"a: \xff\r\n", "a", "\xff"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct field field;
        char *guarded;
        assert_int_equal(parse(cases[i].line, strlen(cases[i].line), &field, &guarded), 0);
        assert_true(slice_equal(field.name, slice_of(cases[i].name)));
        assert_true(slice_equal(field.value, slice_of(cases[i].value)));
        guard_free(guarded, strlen(cases[i].line));
    }
}

static void malformed_lines_are_refused(void **state)
{
    (void)state;
    static const struct slice cases[] = {
        SLICE_LITERAL(""),          SLICE_LITERAL("\r\n"),       SLICE_LITERAL("no colon\r\n"),
        SLICE_LITERAL(":v\r\n"),    SLICE_LITERAL("a :v\r\n"),   SLICE_LITERAL(" folded: x\r\n"),
        SLICE_LITERAL("a:\0\r\n"),  SLICE_LITERAL("a:b\rc"),     SLICE_LITERAL("a:b\nc:d\r\n"),
        SLICE_LITERAL("a\n:b\r\n"), SLICE_LITERAL("a:\x7f\r\n"),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct field field = {SLICE_LITERAL("untouched"), {NULL, 0}};
        char *guarded;
        assert_int_equal(parse(cases[i].bytes, cases[i].length, &field, &guarded), -EINVAL);
        assert_true(slice_equal(field.name, SLICE_LITERAL("untouched")));
        guard_free(guarded, cases[i].length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_classes_are_those_of_the_rfc),
        cmocka_unit_test(lists_are_walked),
        cmocka_unit_test(lines_are_split),
        cmocka_unit_test(malformed_lines_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
