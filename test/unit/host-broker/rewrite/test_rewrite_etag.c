/* Tags of rewritten documents: derived, restored, and left out under other rules. */
#include "test/harness/rewrite_run.h"

#include <errno.h>

#include "host-broker/rewrite/rewrite_etag.h"

#define MARK "0123456789abcdef"
#define OTHER "0123456789abcdee"

static void test_a_tag_comes_back_as_it_was(void **state)
{
    (void)state;
    static const char *const tags[] = {"\"abc\"", "W/\"abc\"", "\"\"", "\"a,b c\xff~codev-\"",
                                       "W/\"\""};
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        char ours[REWRITE_ETAG_MAX], back[REWRITE_MATCH_MAX];
        struct rewrite_match match;
        int length = rewrite_etag_derive(ours, slice_of(tags[i]), MARK);
        assert_true(length > 0);
        assert_memory_equal(ours, "W/\"", 3);
        length = rewrite_etag_restore(back, (struct slice){ours, (size_t)length}, MARK, &match);
        assert_int_equal(length, strlen(tags[i]));
        assert_memory_equal(back, tags[i], (size_t)length);
        assert_true(match.restored && !match.dropped);
    }
}

static const struct {
    const char *value, *expected; /* NULL: malformed, passes as it is */
    bool restored, dropped;
} matches[] = {
    {"\"a\"", "\"a\"", false, false},
    {"W/\"a\" , \"b\",,", "W/\"a\", \"b\"", false, false},
    {"W/\"a~codev-s-" MARK "\"", "\"a\"", true, false},
    {"\"a~codev-s-" MARK "\"", "\"a\"", true, false},
    {"W/\"a~codev-w-" MARK "\", \"b\"", "W/\"a\", \"b\"", true, false},
    {"W/\"a~codev-s-" OTHER "\"", "", false, true},
    {"W/\"a~codev-s-" OTHER "\", W/\"b~codev-s-" MARK "\"", "\"b\"", true, true},
    {"\"~codev-x-" MARK "\"", "\"~codev-x-" MARK "\"", false, false},
    {"\"~codev-s" MARK "\"", "\"~codev-s" MARK "\"", false, false},
    {"", "", false, false},
    {"*", NULL, false, false},
    {"abc", NULL, false, false},
    {"\"abc", NULL, false, false},
    {"\"a\", W/", NULL, false, false},
};

static void test_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
        char out[REWRITE_MATCH_MAX];
        struct rewrite_match match;
        size_t size = strlen(matches[i].value);
        char *guarded = guard_copy(matches[i].value, size);
        int length = rewrite_etag_restore(out, (struct slice){guarded, size}, MARK, &match);
        guard_free(guarded, size);
        if (!matches[i].expected) {
            assert_int_equal(length, -EINVAL);
            continue;
        }
        assert_int_equal(length, strlen(matches[i].expected));
        assert_memory_equal(out, matches[i].expected, (size_t)length);
        assert_int_equal(match.restored, matches[i].restored);
        assert_int_equal(match.dropped, matches[i].dropped);
    }
}

static void test_what_is_no_tag_is_dropped(void **state)
{
    (void)state;
    static char tag[2 * REWRITE_ETAG_MAX], out[REWRITE_ETAG_MAX];
    static const char *const wrong[] = {"", "abc", "\"abc", "w/\"abc\"", "\"a\"b", "\"a\", \"b\""};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(rewrite_etag_derive(out, slice_of(wrong[i]), MARK), -EINVAL);
    snprintf(tag, sizeof(tag), "\"%0*d\"", REWRITE_ETAG_MAX, 0);
    assert_int_equal(rewrite_etag_derive(out, slice_of(tag), MARK), -EINVAL);
    memset(tag, ',', sizeof(tag));
}

static void test_the_mark_stands_for_rules_and_url(void **state)
{
    (void)state;
    static struct rules fewer;
    char mark[REWRITE_MARK_LENGTH + 1], again[REWRITE_MARK_LENGTH + 1];
    rewrite_etag_mark(mark, GUEST, &rules);
    rewrite_etag_mark(again, GUEST, &rules);
    assert_string_equal(mark, again);
    assert_int_equal(strspn(mark, "0123456789abcdef"), REWRITE_MARK_LENGTH);
    rewrite_etag_mark(again, "http://127.0.0.1:8789", &rules);
    assert_string_not_equal(mark, again);
    fewer = rules;
    fewer.count--;
    rewrite_etag_mark(again, GUEST, &fewer);
    assert_string_not_equal(mark, again);
    fewer = rules;
    fewer.rules[0].url.port = 1;
    rewrite_etag_mark(again, GUEST, &fewer);
    assert_string_not_equal(mark, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tag_comes_back_as_it_was),
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_what_is_no_tag_is_dropped),
        cmocka_unit_test(test_the_mark_stands_for_rules_and_url),
    };
    return cmocka_run_group_tests_name("rewrite_etag", tests, load_rules, NULL);
}
