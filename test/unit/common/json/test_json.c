/* The JSON reader: tokens, navigation, positions of errors, limits, numbers. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json/json.h"
#include "test/harness/guard.h"

#define TOKENS 64

static struct json_token tokens[TOKENS];
static struct json_position where;

static int parse(struct json *document, const char *text, uint32_t capacity)
{
    size_t length = strlen(text);
    char *guarded = guard_copy(text, length);
    struct json_token *guarded_tokens = guard_alloc(capacity * sizeof(*tokens));
    int result = json_parse(document, guarded, length, guarded_tokens, capacity, &where);
    memcpy(tokens, guarded_tokens, capacity * sizeof(*tokens));
    guard_free(guarded_tokens, capacity * sizeof(*tokens));
    guard_free(guarded, length);
    if (result == 0) {
        document->text = text;
        document->tokens = tokens;
    }
    return result;
}

static void expect(const struct json *document, uint32_t index, enum json_type type,
                   const char *text, uint32_t size, uint32_t next)
{
    const struct json_token *token = &document->tokens[index];
    assert_int_equal(token->type, type);
    assert_int_equal(token->end - token->start, strlen(text));
    assert_memory_equal(document->text + token->start, text, strlen(text));
    assert_int_equal(token->size, size);
    assert_int_equal(token->next, next);
}

static void tokens_know_what_lies_behind_them(void **state)
{
    (void)state;
    struct json document;
    assert_int_equal(
        parse(&document, " {\"a\":[1,{\"b\":null},[]], \"c\" : \"x\\\"\",\"d\":{}}", 16), 0);
    assert_int_equal(document.count, 12);
    assert_int_equal(tokens[0].size, 3);
    assert_int_equal(tokens[0].next, 12);
    expect(&document, 1, JSON_STRING, "a", 0, 2);
    expect(&document, 2, JSON_ARRAY, "[1,{\"b\":null},[]]", 3, 8);
    expect(&document, 3, JSON_NUMBER, "1", 0, 4);
    expect(&document, 4, JSON_OBJECT, "{\"b\":null}", 1, 7);
    expect(&document, 5, JSON_STRING, "b", 0, 6);
    expect(&document, 6, JSON_NULL, "null", 0, 7);
    expect(&document, 7, JSON_ARRAY, "[]", 0, 8);
    expect(&document, 9, JSON_STRING, "x\\\"", 0, 10);
    expect(&document, 11, JSON_OBJECT, "{}", 0, 12);
}

static void the_top_may_be_any_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum json_type type;
    } tops[] = {{"{}", JSON_OBJECT},      {"[]", JSON_ARRAY},  {"\"\"", JSON_STRING},
                {"-0.1e+9", JSON_NUMBER}, {"true", JSON_TRUE}, {"false", JSON_FALSE},
                {"null", JSON_NULL}};
    for (size_t i = 0; i < JSON_TYPE_COUNT; i++) {
        struct json document;
        assert_int_equal(parse(&document, tops[i].text, 1), 0);
        assert_int_equal(document.count, 1);
        assert_int_equal(tokens[0].type, tops[i].type);
        assert_int_equal(tops[i].type, i);
    }
}

static void members_are_found_at_their_level_only(void **state)
{
    (void)state;
    struct json document;
    assert_int_equal(parse(&document, "{\"a\":{\"b\":1,\"c\":2},\"\\u0062\":3,\"\":4}", 16), 0);
    uint32_t inner = json_member(&document, 0, "a"), index = json_member(&document, 0, "b");
    int64_t value = 0;
    assert_int_equal(json_int64(&document, index, &value), 0);
    assert_int_equal(value, 3);
    assert_int_equal(json_int64(&document, json_member(&document, inner, "c"), &value), 0);
    assert_int_equal(value, 2);
    assert_int_equal(json_int64(&document, json_member(&document, 0, ""), &value), 0);
    assert_int_equal(value, 4);
    assert_int_equal(json_member(&document, 0, "c"), 0);
    assert_int_equal(json_member(&document, 0, "ab"), 0);
    assert_int_equal(json_member(&document, index, "b"), 0); /* not an object */
}

static void walks_visit_each_child_once(void **state)
{
    (void)state;
    struct json document;
    assert_int_equal(parse(&document, "[[1,2],{\"a\":[3]},[],4]", 16), 0);
    uint32_t starts[8];
    int count = 0;
    for (uint32_t i = json_first(&document, 0); i != 0; i = json_next(&document, 0, i))
        starts[count++] = tokens[i].start;
    assert_int_equal(count, 4);
    assert_int_equal(starts[1], 7);
    assert_int_equal(starts[3], 20);
    assert_int_equal(json_first(&document, 7), 0); /* the empty array */
    uint32_t object = json_next(&document, 0, 1);
    uint32_t name = json_first(&document, object);
    assert_true(json_string_equals(&document, name, "a"));
    assert_int_equal(json_next(&document, object, name), 0);
}

static void duplicates_are_found_after_unescaping(void **state)
{
    (void)state;
    struct json document;
    assert_int_equal(parse(&document, "{\"a\":1,\"b\":{\"a\":2},\"\\u0061\":3}", 16), 0);
    assert_int_equal(json_find_duplicate(&document, 0), 7);
    assert_int_equal(json_find_duplicate(&document, 4), 0);
    assert_int_equal(parse(&document, "{\"a\":1,\"ab\":2,\"\":3,\"a\\u0000\":4}", 16), 0);
    assert_int_equal(json_find_duplicate(&document, 0), 0);
    assert_int_equal(parse(&document, "[1,1]", 16), 0);
    assert_int_equal(json_find_duplicate(&document, 0), 0);
    assert_int_equal(parse(&document, "[\"a\",[\"b\"],1,\"b\",\"\\u0061\",\"1\"]", 16), 0);
    assert_int_equal(json_find_duplicate(&document, 0), 6);
}

/* Enough names that some share a bit of the bitmap. */
static void a_duplicate_among_many(void **state)
{
    enum { NAMES = 2000 };
    static char text[NAMES * 16];
    static struct json_token many[2 * NAMES + 3];
    struct json document;
    struct json_position where;
    (void)state;
    for (int again = -1; again < NAMES; again += 97) { /* this name is repeated at the end */
        size_t length = (size_t)sprintf(text, "{");
        for (int i = 0; i < NAMES; i++)
            length += (size_t)sprintf(text + length, "\"name-%d\":0,", i);
        sprintf(text + length, "\"name-%d\":0}", again < 0 ? NAMES : again);
        assert_int_equal(json_parse(&document, text, strlen(text), many, 2 * NAMES + 3, &where), 0);
        assert_int_equal(json_find_duplicate(&document, 0), again < 0 ? 0 : 2 * NAMES + 1);
    }
}

static void errors_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned line, column;
        const char *reason;
    } cases[] = {
        {"", 1, 1, "the text ends where a value is expected"},
        {"{\"a\":1,}", 1, 8, "a comma before the closing brace"},
        {"[1,]", 1, 4, "a value is expected here"},
        {"[1 2]", 1, 4, "a comma or closing bracket is expected here"},
        {"{\"a\":1 \"b\":2}", 1, 8, "a comma or closing brace is expected here"},
        {"{\"a\" 1}", 1, 6, "a colon is expected after the name"},
        {"{a:1}", 1, 2, "a string in double quotes is expected here"},
        {"{\n  \"\xc3\xa9\xe2\x82\xac\": x", 2, 9, "a value is expected here"},
        {"{}\n\n {", 3, 2, "something follows the value"},
        {"[\"a\nb\"]", 1, 4, "a control character in a string must be escaped"},
        {"[\"\\x\"]", 1, 4, "no such escape in a string"},
        {"[\"\\u12G4\"]", 1, 7, "\\u needs four hexadecimal digits"},
        {"[\"a\xff\"]", 1, 4, "not UTF-8"},
        {"[\"abc", 1, 6, "the string has no end"},
        {"[01]", 1, 3, "a number must not begin with 0"},
        {"[-]", 1, 3, "a digit is missing after the minus sign"},
        {"[1.]", 1, 4, "a digit is missing after the decimal point"},
        {"[1e+]", 1, 5, "a digit is missing in the exponent"},
        {"[nul]", 1, 5, "a word that is not true, false or null"},
        {"[[[", 1, 4, "the text ends where a value is expected"},
        {"[1", 1, 3, "the text ends inside an object or array"},
        {"\xef\xbb\xbf{}", 1, 1, "a value is expected here"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json document = {.count = 99};
        assert_int_equal(parse(&document, cases[i].text, 16), -EINVAL);
        assert_string_equal(where.reason, cases[i].reason);
        assert_int_equal(where.line, cases[i].line);
        assert_int_equal(where.column, cases[i].column);
        assert_int_equal(document.count, 99);
    }
}

static void every_prefix_of_a_text_is_refused(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\\u00e9\\n\":[1.5e-3,true,false,null,\"\xe2\x82\xac\"],\"b\":{}}";
    struct json document;
    assert_int_equal(parse(&document, text, 16), 0);
    for (size_t length = 0; length < strlen(text); length++) {
        char *guarded = guard_copy(text, length);
        assert_int_equal(json_parse(&document, guarded, length, tokens, TOKENS, &where), -EINVAL);
        assert_in_range(where.offset, 0, length);
        guard_free(guarded, length);
    }
}

static void limits_are_exact(void **state)
{
    (void)state;
    char text[4 * JSON_DEPTH_MAX];
    struct json document;
    for (int depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        int result = parse(&document, text, TOKENS);
        assert_int_equal(result, depth <= JSON_DEPTH_MAX ? 0 : -E2BIG);
    }
    assert_int_equal(where.column, JSON_DEPTH_MAX + 1);
    assert_string_equal(where.reason, "nested too deeply");
    assert_int_equal(parse(&document, "[1,2,3]", 4), 0);
    assert_int_equal(parse(&document, "[1,2,3]", 3), -E2BIG);
    assert_int_equal(where.column, 6);
    assert_string_equal(where.reason, "too many values");
    assert_int_equal(parse(&document, "[]", 0), -E2BIG);
}

static void nesting_remembers_what_it_is_in(void **state)
{
    (void)state;
    struct json document;
    assert_int_equal(parse(&document, "[{\"a\":[{\"b\":[1]},2]},3]", 16), 0);
    assert_int_equal(parse(&document, "[{\"a\":[1}]]", 16), -EINVAL);
    assert_int_equal(parse(&document, "[{\"a\":1]]", 16), -EINVAL);
    assert_int_equal(parse(&document, "[[1],\"a\":2]", 16), -EINVAL);
}

static void integers_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        int64_t value;
    } cases[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", -ERANGE, 0},
        {"-9223372036854775809", -ERANGE, 0},
        {"99999999999999999999999", -ERANGE, 0},
        {"1.0", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"\"1\"", -EINVAL, 0},
        {"true", -EINVAL, 0},
        {"1790000000000000000", 0, 1790000000000000000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json document;
        int64_t value = 0;
        assert_int_equal(parse(&document, cases[i].text, 4), 0);
        assert_int_equal(json_int64(&document, 0, &value), cases[i].result);
        assert_true(value == cases[i].value);
    }
}

static void a_byte_order_mark_is_skipped_on_request(void **state)
{
    (void)state;
    assert_int_equal(json_skip_bom("\xef\xbb\xbf{}", 5), 3);
    assert_int_equal(json_skip_bom("\xef\xbb", 2), 0);
    assert_int_equal(json_skip_bom("{}", 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_know_what_lies_behind_them),
        cmocka_unit_test(the_top_may_be_any_value),
        cmocka_unit_test(members_are_found_at_their_level_only),
        cmocka_unit_test(walks_visit_each_child_once),
        cmocka_unit_test(duplicates_are_found_after_unescaping),
        cmocka_unit_test(a_duplicate_among_many),
        cmocka_unit_test(errors_have_a_place),
        cmocka_unit_test(every_prefix_of_a_text_is_refused),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(nesting_remembers_what_it_is_in),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(a_byte_order_mark_is_skipped_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
