/* Unit tests of init/stage.c: order, report, the first failure. */
#include "init/stage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* What the stages of this test see; init's own structure is not needed. */
struct sandbox {
    int ran, reported;
    int fails_at; /* or -1 */
};

static int run_one(struct sandbox *sandbox, struct failure *why)
{
    if (sandbox->ran == sandbox->fails_at)
        return failure_set(why, EIO, "stage %d broke", sandbox->ran);
    sandbox->ran++;
    return 0;
}

static void report(struct sandbox *sandbox, enum stage_id stage, int64_t nanoseconds)
{
    assert_int_equal(stage, sandbox->reported);
    assert_int_equal(sandbox->ran, sandbox->reported + 1);
    assert_true(nanoseconds >= 0);
    sandbox->reported++;
}

static stage_function *const functions[STAGE_COUNT] = {
    run_one, run_one, run_one, run_one, run_one, run_one,
    run_one, run_one, run_one, run_one, run_one, run_one,
};
static const struct stage_plan plan = {.functions = functions, .done = report};

static void all_in_order(void **state)
{
    struct sandbox sandbox = {.fails_at = -1};
    enum stage_id failed;
    struct failure why;

    (void)state;
    assert_int_equal(stage_run_all(&plan, &sandbox, &failed, &why), 0);
    assert_int_equal(sandbox.reported, STAGE_COUNT);
}

static void first_failure_ends_it(void **state)
{
    (void)state;
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        struct sandbox sandbox = {.fails_at = stage};
        enum stage_id failed;
        struct failure why;
        assert_int_equal(stage_run_all(&plan, &sandbox, &failed, &why), -EIO);
        assert_int_equal(failed, stage);
        assert_int_equal(sandbox.reported, stage);
        assert_non_null(strstr(why.text, "broke"));
    }
}

/* A stage that a place does not have is passed over, and not reported. */
static void absent_stage(void **state)
{
    static stage_function *some[STAGE_COUNT] = {[STAGE_BASE] = run_one};
    static const struct stage_plan short_plan = {.functions = some, .done = report};
    struct sandbox sandbox = {.fails_at = -1};
    enum stage_id failed;
    struct failure why;

    (void)state;
    assert_int_equal(stage_run_all(&short_plan, &sandbox, &failed, &why), 0);
    assert_int_equal(sandbox.ran, 1);
    assert_int_equal(sandbox.reported, 1);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(stage_names[STAGE_BASE], "base");
    assert_string_equal(stage_names[STAGE_SELF_TEST], "self-test");
    assert_string_equal(stage_names[STAGE_SERVER], "server");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_in_order),
        cmocka_unit_test(first_failure_ends_it),
        cmocka_unit_test(absent_stage),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
