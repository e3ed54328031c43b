/* Unit tests of init/system/restart.c. */
#include "init/system/restart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND 1000000000ll

static void first_is_immediate_then_backs_off(void **state)
{
    struct restart_policy policy = {.next = 0};
    int64_t now = 100 * SECOND, expected = RESTART_WAIT_FIRST_NS;

    (void)state;
    assert_int_equal(restart_wait(&policy, now), 0);
    for (int number = 1; number < RESTARTS_MAX; number++) {
        assert_int_equal(restart_wait(&policy, now += SECOND),
                         expected < RESTART_WAIT_MOST_NS ? expected : RESTART_WAIT_MOST_NS);
        expected *= 2;
    }
    assert_int_equal(restart_wait(&policy, now + SECOND), -1);
}

static void window_slides(void **state)
{
    struct restart_policy policy = {.next = 0};
    int64_t now = SECOND;

    (void)state;
    for (int number = 0; number < RESTARTS_MAX; number++, now += SECOND)
        assert_true(restart_wait(&policy, now) >= 0);
    assert_int_equal(restart_wait(&policy, now), -1);
    /* the first, at 1 s, is out of the window at 31 s */
    assert_int_equal(restart_wait(&policy, SECOND + RESTART_WINDOW_NS - 1), -1);
    assert_true(restart_wait(&policy, SECOND + RESTART_WINDOW_NS) > 0);
}

static void rare_deaths_never_end_it(void **state)
{
    struct restart_policy policy = {.next = 0};

    (void)state;
    for (int64_t number = 1; number < 1000; number++)
        assert_int_equal(restart_wait(&policy, number * RESTART_WINDOW_NS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_is_immediate_then_backs_off),
        cmocka_unit_test(window_slides),
        cmocka_unit_test(rare_deaths_never_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
