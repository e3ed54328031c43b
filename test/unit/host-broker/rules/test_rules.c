/* Rules as text: names, URLs, positions, warnings. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>

#include "host-broker/rules/rules.h"
#include "test/harness/guard.h"

static struct rules rules;

static int parse(const char *text, size_t length, struct failure *why)
{
    char *guarded = guard_copy(text, length);
    int result = rules_parse(&rules, "F", guarded, length, why);
    guard_free(guarded, length);
    return result;
}

static void rules_keep_their_order(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbf{\n \"npm\": \"https://npm.example/\",\r\n"
                               "\"0.a_b-c\":\"https:\\/\\/H:8443/\\u0061\"}\n";
    struct failure why;
    assert_int_equal(parse(text, sizeof(text) - 1, &why), 0);
    assert_int_equal(rules.count, 2);
    assert_string_equal(rules.rules[0].name, "npm");
    assert_string_equal(rules.rules[1].name, "0.a_b-c");
    assert_string_equal(rules.rules[1].url.host, "h");
    assert_string_equal(rules.rules[1].url.path, "/a");
    assert_ptr_equal(rules_find(&rules, SLICE_LITERAL("npm")), &rules.rules[0]);
    assert_null(rules_find(&rules, SLICE_LITERAL("NPM")));
    assert_null(rules_find(&rules, SLICE_LITERAL("np")));
    assert_null(rules_find(&rules, SLICE_LITERAL("")));
    assert_int_equal(parse(" {} ", 4, &why), 0);
    assert_int_equal(rules.count, 0);
}

static void what_is_wrong_has_a_position(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason; /* how the reason begins */
    } cases[] = {
        {"", "F:1:1: "},
        {"[]", "F:1:1: expected an object of name to URL, not an array"},
        {"\"x\"", "F:1:1: expected an object of name to URL, not a string"},
        {"null", "F:1:1: expected an object"},
        {"{\n  \"npm\": 5}", "F:2:10: the URL must be a string, not a number"},
        {"{\n  \"npm\": {}}", "F:2:10: the URL must be a string, not an object"},
        {"{\"npm\": null}", "F:1:9: the URL must be a string, not "},
        {"{\"npm\": \"https://h\",}", "F:1:21: "},
        {"{\"npm\": \"https://h\"} x", "F:1:22: "},
        {"{\"npm\": \"https://h\"\n", "F:2:1: "},
        {"{\"\xc3\xa4\": 1, \"npm\"}", "F:1:15: "},
        {"{\"a\":\"https://h\",\n\n \"a\":\"https://i\"}", "F:3:2: this name is used twice"},
        {"{\"a\":\"https://h\",\"\\u0061\":\"https://i\"}", "F:1:18: this name is used twice"},
        {"{\"\":\"https://h\"}", "F:1:2: a rule's name is empty"},
        {"{\"gateway\":\"https://h\"}", "F:1:2: the name gateway is"},
        {"{\"NPM\":\"https://h\"}", "F:1:2: a rule's name must begin with a-z or 0-9"},
        {"{\"_undeclared\":\"https://h\"}", "F:1:2: a rule's name must begin"},
        {"{\"..\":\"https://h\"}", "F:1:2: a rule's name must begin"},
        {"{\"a/b\":\"https://h\"}", "F:1:2: a rule's name may contain"},
        {"{\"aB\":\"https://h\"}", "F:1:2: a rule's name may contain"},
        {"{\"a\\u0000\":\"https://h\"}", "F:1:2: a rule's name contains a NUL"},
        {"{\"a\":\"https://h\\u0000.evil\"}", "F:1:6: the URL contains a NUL"},
        {"{\"a\":\"https://h.\"}", "F:1:6: the host ends with a dot"},
        {"{\"a\":\"h\"}", "F:1:6: the URL does not begin with https://"},
        {"{\"a\":\"\"}", "F:1:6: the URL does not begin with https://"},
        {"{\"a\":\"https://u:p@h\"}", "F:1:6: user information"},
        {"{\"a\":\"https://h\"}\xff", "F:1:18: "},
        {"{'a':'https://h'}", "F:1:2: "},
        {"// comment\n{}", "F:1:1: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure why = {""};
        assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &why), -EINVAL);
        if (strncmp(why.text, cases[i].reason, strlen(cases[i].reason)) != 0)
            fail_msg("%s: %s", cases[i].text, why.text);
        assert_int_equal(rules.count, 0);
    }
    struct failure why;
    assert_int_equal(parse("{}\0", 3, &why), -EINVAL);
    assert_int_equal(strncmp(why.text, "F:1:3: ", 7), 0);
}

static void names_have_a_length(void **state)
{
    (void)state;
    char text[600];
    struct failure why;
    static const int lengths[] = {64, 65, 500};
    for (size_t i = 0; i < 3; i++) {
        int length = snprintf(text, sizeof(text), "{\"%0*d\":\"https://h\"}", lengths[i], 0);
        assert_int_equal(parse(text, (size_t)length, &why), lengths[i] > 64 ? -EINVAL : 0);
        if (lengths[i] > 64)
            assert_string_equal(why.text, "F:1:2: a rule's name is longer than 64 characters");
    }
}

static void the_number_of_rules_is_limited(void **state)
{
    (void)state;
    static char text[64 * (RULES_MAX + 1)];
    for (int count = RULES_MAX; count <= RULES_MAX + 1; count++) {
        struct failure why;
        size_t length = (size_t)sprintf(text, "{");
        for (int i = 0; i < count; i++)
            length +=
                (size_t)sprintf(text + length, "%s\"r%d\":\"https://h%d\"", i ? "," : "", i, i);
        text[length++] = '}';
        assert_int_equal(parse(text, length, &why), count > RULES_MAX ? -EINVAL : 0);
        assert_int_equal(rules.count, count > RULES_MAX ? 0 : count);
        if (count > RULES_MAX)
            assert_non_null(strstr(why.text, ": more than 1024 rules"));
    }
}

static void warnings_name_the_rule(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected; /* all warnings, a newline behind each */
    } cases[] = {
        {"{}", ""},
        {"{\"a\":\"https://h\"}", ""},
        {"{\"a\":\"http://registry:8081\"}",
         "rule a: http, not https: requests to registry can be read and changed on the way\n"},
        {"{\"pypi\":\"https://pypi.org\"}",
         "rule pypi: pypi.org links to files.pythonhosted.org: downloads need a rule for "
         "https://files.pythonhosted.org too\n"},
        {"{\"pypi\":\"https://PyPI.org/simple\",\"f\":\"https://files.pythonhosted.org\"}", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char all[1024] = "", one[256];
        size_t cursor = 0;
        assert_int_equal(parse(cases[i].text, strlen(cases[i].text), NULL), 0);
        while (rules_warning(&rules, &cursor, one, sizeof(one)))
            strcat(strcat(all, one), "\n");
        assert_string_equal(all, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_keep_their_order), cmocka_unit_test(what_is_wrong_has_a_position),
        cmocka_unit_test(names_have_a_length),    cmocka_unit_test(the_number_of_rules_is_limited),
        cmocka_unit_test(warnings_name_the_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
