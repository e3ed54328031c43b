/* Targets: forms, names and the path check. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>

#include "host-broker/http/target.h"
#include "test/harness/guard.h"

static int parse(struct target *out, const char *method, const char *text, size_t length,
                 enum target_fault *fault, char **guarded)
{
    *guarded = guard_copy(text, length);
    return target_parse(out, slice_of(method), (struct slice){*guarded, length}, fault);
}

static void targets_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name, *rest, *query; /* query NULL: none */
    } cases[] = {
        {"/", "", "", NULL},
        {"/?", "", "", ""},
        {"/gateway", "gateway", "", NULL},
        {"/gateway?a=b", "gateway", "", "a=b"},
        {"/gateway/v1/messages?beta=true", "gateway", "/v1/messages", "beta=true"},
        {"/npm/", "npm", "/", NULL},
        {"/npm//a//", "npm", "//a//", NULL},
        {"//npm/a", "", "/npm/a", NULL},
        {"/npm/@scope%2fname", "npm", "/@scope%2fname", NULL},
        {"/npm/@scope%2Fname?", "npm", "/@scope%2Fname", ""},
        {"/npm/a?x=/../&y=\"{|}\\%zz%0a?", "npm", "/a", "x=/../&y=\"{|}\\%zz%0a?"},
        {"/npm/...", "npm", "/...", NULL},
        {"/npm/.npmrc/a..b/..c/d../.e.", "npm", "/.npmrc/a..b/..c/d../.e.", NULL},
        {"/npm/%e4%B8%ad;v=1", "npm", "/%e4%B8%ad;v=1", NULL},
        {"/npm/%252e%252e/a\\b", "npm", "/%252e%252e/a\\b", NULL},
        {"/npm/a;../b;..;c", "npm", "/a;../b;..;c", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct target target;
        enum target_fault fault = TARGET_FAULT_NONE;
        char *guarded;
        size_t length = strlen(cases[i].text);
        if (parse(&target, "GET", cases[i].text, length, &fault, &guarded) != 0)
            fail_msg("%s: %s", cases[i].text, target_fault_kinds[fault].reason);
        assert_true(slice_equal(target.name, slice_of(cases[i].name)));
        assert_true(slice_equal(target.rest, slice_of(cases[i].rest)));
        assert_int_equal(target.has_query, !!cases[i].query);
        if (cases[i].query)
            assert_true(slice_equal(target.query, slice_of(cases[i].query)));
        guard_free(guarded, length);
    }
}

static const struct {
    const char *method, *text;
    enum target_fault fault;
} refused_targets[] = {
    {"CONNECT", "example.com:443", TARGET_FAULT_METHOD},
    {"CONNECT", "/gateway/x", TARGET_FAULT_METHOD},
    {"TRACE", "/gateway/x", TARGET_FAULT_METHOD},
    {"trace", "/npm/", TARGET_FAULT_METHOD},
    {"TRACK", "/npm/", TARGET_FAULT_METHOD},
    {"GET", "http://example.com/", TARGET_FAULT_ABSOLUTE},
    {"GET", "HTTPS://example.com", TARGET_FAULT_ABSOLUTE},
    {"GET", "coap+tcp://x", TARGET_FAULT_ABSOLUTE},
    {"OPTIONS", "*", TARGET_FAULT_ASTERISK},
    {"GET", "example.com:80", TARGET_FAULT_FORM},
    {"GET", "npm/a", TARGET_FAULT_FORM},
    {"GET", "**", TARGET_FAULT_FORM},
    {"GET", "://x", TARGET_FAULT_FORM},
    {"GET", "\\npm", TARGET_FAULT_FORM},
    {"GET", "", TARGET_FAULT_FORM},
    {"GET", "/npm/a#b", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/a?b#c", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/a b", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/\xc3\xa4", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/?\xc3\xa4", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/\x01", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/\x7f", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/%00", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/%0d%0aX", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/%1F", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/%7f", TARGET_FAULT_CHARACTER},
    {"GET", "/npm/%", TARGET_FAULT_ESCAPE},
    {"GET", "/npm/%2", TARGET_FAULT_ESCAPE},
    {"GET", "/npm/%2?f", TARGET_FAULT_ESCAPE},
    {"GET", "/npm/%zz", TARGET_FAULT_ESCAPE},
    {"GET", "/npm/%2g", TARGET_FAULT_ESCAPE},
    {"GET", "/npm/.", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/..", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/./a", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/a/../b", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/../npm/", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/..?x", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/%2e%2e/b", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/.%2E", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/%2e/", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/a%2f..%2fb", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/a%2F%2e%2E", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/a%5c..%5Cb", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/a\\..\\b", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/..;/b", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/..;x=y", TARGET_FAULT_DOT_SEGMENT},
    {"GET", "/npm/.%2e%3bx/b", TARGET_FAULT_DOT_SEGMENT},
};

static void refused_targets_say_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused_targets) / sizeof(refused_targets[0]); i++) {
        struct target target = {.has_query = true};
        enum target_fault fault = TARGET_FAULT_NONE;
        char *guarded;
        size_t length = strlen(refused_targets[i].text);
        assert_int_equal(parse(&target, refused_targets[i].method, refused_targets[i].text, length,
                               &fault, &guarded),
                         -EINVAL);
        if (fault != refused_targets[i].fault)
            fail_msg("%s: fault %d", refused_targets[i].text, fault);
        assert_true(target.has_query && !target.name.bytes);
        guard_free(guarded, length);
    }
}

static void held_paths_stay_below_their_prefix(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "/%252e%252e/a",   "/%252e.",           "/a/.%252E/b",     "/%25252e%25252e",
        "/%25%32%65./a",   "/%2525%2532%2565/", "/a%252f..%252fb", "/a%255c..%255cb",
        "/%c0%ae%c0%ae/a", "/%25c0%25ae",       "/%C1%9c",         "/%e0%80%ae",
        "/%f0%80%80%ae",   "/..%20/a",          "/.%20./a",        "/a/%20..",
        "/...%20",         "/..%2520/",         "/..%3fx",         "/..%23",
        "/..%2500",        "/%250d%250a",       "/..%253bx/a",
    };
    static const char *const passed[] = {
        "",
        "/",
        "/a/b",
        "/@scope%2fname",
        "/%2540scope%252fname",
        "/a%20b/%20/c",
        "/...",
        "/a%20..b",
        "/%C3%A9/%e4%B8%ad",
        "/%25",
        "/100%25",
        "/%252",
        "/a%252eb",
        "/%E9t%E9",
        "/x..%20/",
        "/%f0%9f%98%80",
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (target_check_held_path(slice_of(refused[i])) != TARGET_FAULT_HELD)
            fail_msg("%s passes", refused[i]);
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
        if (target_check_held_path(slice_of(passed[i])) != TARGET_FAULT_NONE)
            fail_msg("%s is refused", passed[i]);
}

static void encoded_slashes_make_no_name(void **state)
{
    (void)state;
    struct target target;
    enum target_fault fault;
    char *guarded;
    static const char text[] = "/npm%2fa/b";
    assert_int_equal(parse(&target, "GET", text, sizeof(text) - 1, &fault, &guarded), 0);
    assert_true(slice_equal(target.name, SLICE_LITERAL("npm%2fa")));
    guard_free(guarded, sizeof(text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_taken_apart),
        cmocka_unit_test(refused_targets_say_why),
        cmocka_unit_test(held_paths_stay_below_their_prefix),
        cmocka_unit_test(encoded_slashes_make_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
