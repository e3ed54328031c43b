/* The bars of --timeline: each begins where the previous one ends, hostile names are escaped, and
 * their number is bounded. */
#include "test/harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-harness/launcher/guest/timeline.h"

static char *draw(const struct timeline *timeline)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    timeline_draw(timeline, out, "\n");
    fclose(out);
    return text;
}

static void bars_follow_each_other(void **state)
{
    struct timeline timeline = {0};
    (void)state;
    timeline_add(&timeline, "half", 50);
    timeline_add(&timeline, "none", 0);
    timeline_add(&timeline, "rest", 50);
    char *text = draw(&timeline);
    assert_non_null(
        strstr(text, "half           [########################                        ]"));
    assert_non_null(
        strstr(text, "none           [                        |                       ]"));
    assert_non_null(
        strstr(text, "rest           [                        ########################]"));
    assert_non_null(strstr(text, "100.0 ms"));
    free(text);
}

static void hostile_and_many(void **state)
{
    struct timeline timeline = {0};
    (void)state;
    for (int i = 0; i < 2 * TIMELINE_ROWS_MAX; i++)
        timeline_add(&timeline, "\x1b[31mred", 1);
    assert_int_equal(timeline.count, TIMELINE_ROWS_MAX);
    char *text = draw(&timeline);
    assert_null(strchr(text, '\x1b'));
    free(text);
}

static void nothing_to_draw(void **state)
{
    struct timeline timeline = {0};
    (void)state;
    char *text = draw(&timeline);
    assert_string_equal(text, "");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_follow_each_other),
        cmocka_unit_test(hostile_and_many),
        cmocka_unit_test(nothing_to_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
