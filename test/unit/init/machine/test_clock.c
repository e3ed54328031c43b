/* Unit tests of clock_choose in init/machine/machine.c. */
#include "test/harness/unit.h"

#include "init/machine/machine.h"

#define MS 1000000LL
#define S (1000 * MS)
#define NOW (1790000000 * S)

/* The host's time was `told` at some moment of the last `age_max`; the clock shows `clock`. */
static const struct {
    int64_t clock, told, age_max, chosen;
} cases[] = {
    /* the present time: a clock that is behind, or more than 100 ms ahead, is set */
    {NOW, NOW, 0, 0},
    {NOW + 100 * MS, NOW, 0, 0},
    {NOW + 101 * MS, NOW, 0, NOW},
    {NOW - 1, NOW, 0, NOW},
    {NOW - 101 * MS, NOW, 0, NOW},
    {0, NOW, 0, NOW},
    {NOW, 1, 0, 1},
    /* an old time does not set a right clock back: the answer waited for 15 s */
    {NOW, NOW - 15 * S, 15 * S, 0},
    {NOW, NOW - 14 * S, 15 * S, 0},
    {NOW, NOW, 15 * S, 0},
    {NOW + 100 * MS, NOW - 15 * S, 15 * S, 0},
    /* a clock that fits no moment of these 15 s goes to the nearest, or at most 100 ms beyond */
    {NOW + 101 * MS, NOW - 15 * S, 15 * S, NOW},
    {NOW - 1, NOW, 15 * S, NOW + 100 * MS},
    {NOW - 3600 * S, NOW, 15 * S, NOW + 100 * MS},
    {NOW - 3600 * S, NOW, 2 * MS, NOW + 2 * MS},
    {NOW + 3600 * S, NOW, 2 * MS, NOW + 2 * MS},
    /* numbers of any size */
    {NOW, INT64_MAX, 4 * S, INT64_MAX},
    {0, INT64_MAX, 0, INT64_MAX},
    {INT64_MAX, INT64_MAX, 4 * S, 0},
};

/* Whatever time an answer needs each way, the clock that it sets is not set again by the next one
 * that needs as long, and never by an answer that waited. */
static void a_clock_that_was_set_stays(void **state)
{
    (void)state;
    for (int64_t to_host = 0; to_host < 400 * MS; to_host += 40 * MS + 1) {
        for (int64_t from_host = 0; from_host < 400 * MS; from_host += 40 * MS + 1) {
            int64_t age = to_host + from_host, error = 0;
            int64_t chosen = clock_choose(0, NOW - from_host, age); /* the truth: NOW */
            error = chosen - NOW;
            assert_true(error <= 100 * MS && error >= -from_host);
            /* the next answer, then one that waited for a minute */
            int64_t next = clock_choose(NOW + error, NOW - from_host, age);
            assert_int_equal(next, 0);
            next = clock_choose(NOW + error, NOW - from_host - 60 * S, age + 60 * S);
            assert_int_equal(next, 0);
        }
    }
}

static void only_a_clock_that_is_off_is_set(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(clock_choose(cases[i].clock, cases[i].told, cases[i].age_max),
                         cases[i].chosen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_clock_that_is_off_is_set),
        cmocka_unit_test(a_clock_that_was_set_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
