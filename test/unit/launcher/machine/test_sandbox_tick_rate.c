/* The counter's rate from two samples, and when it is not known. */
#include "test/harness/unit.h"

#include <poll.h>
#include <stdlib.h>

#include "qemu-harness/launcher/machine/tick_rate_internal.h"

static uint32_t rate(uint64_t ticks, int64_t ns)
{
    struct tick_sample first = {.ticks = 1000, .ns = 5000};
    struct tick_sample second = {.ticks = 1000 + ticks, .ns = 5000 + ns};
    return tick_rate_khz(&first, &second);
}

static void rates(void **state)
{
    struct tick_sample none = {0}, some = {.ticks = 5, .ns = 10000000};
    (void)state;
    assert_int_equal(rate(26000000, 10000000), 2600000);
    assert_int_equal(rate(1000000, 1000000), 1000000);
    assert_int_equal(rate(1000000, 999999), 0); /* too close */
    assert_int_equal(rate(0, 10000000), 0);
    assert_int_equal(rate((uint64_t)-500, 10000000), 0); /* the counter went back */
    assert_int_equal(rate(UINT64_MAX / 4, 1000000), 0);  /* too large */
    assert_int_equal(tick_rate_khz(&none, &none), 0);
    assert_int_equal(tick_rate_khz(&none, &some), 0);
    assert_int_equal(tick_rate_khz(&some, &none), 0);
}

/* Two measurements without a common sample agree, however busy the machine is, since a sample
 * takes its quickest reading. */
static void this_machine(void **state)
{
    struct tick_sample samples[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        samples[i] = tick_sample_take();
        poll(NULL, 0, 20);
    }
    long one = tick_rate_khz(&samples[0], &samples[1]);
    long other = tick_rate_khz(&samples[2], &samples[3]);
    assert_int_equal(one != 0, other != 0);
    assert_true(labs(one - other) * 20 <= one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates),
        cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
