/* Descriptors that are watched by turns, and numbers that come back as another's. */
#include "test/harness/unit.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-broker/base/event_loop.h"

static struct event_loop loop;

static struct event_ref upstream(int fd)
{
    return (struct event_ref){.source = EVENT_UPSTREAM, .pool = 1, .index = (uint32_t)fd};
}

/* Two ends of which the first has something to read. */
static void open_readable(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
}

static void close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* The one event that is there. */
static struct event_ref next_event(void)
{
    assert_int_equal(event_loop_wait(&loop, loop.now), 1);
    return loop.ready[0].ref;
}

static void nothing_is_there(void)
{
    assert_int_equal(event_loop_wait(&loop, loop.now), 0);
}

static void what_is_parked_and_watched_again_is_heard(void **state)
{
    int ends[2];
    (void)state;
    open_readable(ends);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(event_loop_watch(&loop, ends[0], EVENT_READABLE, upstream(ends[0])), 0);
        struct event_ref ref = next_event();
        assert_int_equal(ref.source, EVENT_UPSTREAM);
        assert_int_equal(ref.pool, 1);
        assert_int_equal(ref.index, ends[0]);
        assert_true(event_loop_is_wanted(&loop, ends[0], ref.stamp));
        event_loop_park(&loop, ends[0]);
    }
    close_both(ends);
    nothing_is_there();
}

static void open_parked(int ends[2])
{
    open_readable(ends);
    assert_int_equal(event_loop_watch(&loop, ends[0], EVENT_READABLE, upstream(ends[0])), 0);
    event_loop_park(&loop, ends[0]);
}

static void what_is_parked_is_taken_out_at_its_first_event(void **state)
{
    int ends[2];
    (void)state;
    open_parked(ends);
    assert_false(event_loop_is_wanted(&loop, ends[0], next_event().stamp));
    nothing_is_there();
    assert_int_equal(event_loop_watch(&loop, ends[0], EVENT_READABLE, upstream(ends[0])), 0);
    assert_true(event_loop_is_wanted(&loop, ends[0], next_event().stamp));
    close_both(ends);
}

/* Closed by somebody who told nobody, while it was parked and while its event waited to be looked at. */
static void a_number_that_came_back_is_left_alone(void **state)
{
    int old[2], new[2];
    (void)state;
    open_parked(old);
    open_readable(new);
    struct event_ref late = next_event();
    int number = old[0];
    assert_int_equal(dup2(new[0], number), number); /* closes the old one */
    close(new[0]);
    struct event_ref other = {.source = EVENT_CONNECTION, .index = 7};
    assert_int_equal(event_loop_add(&loop, number, EVENT_READABLE, other), 0);
    assert_false(event_loop_is_wanted(&loop, number, late.stamp));
    struct event_ref ref = next_event();
    assert_int_equal(ref.source, EVENT_CONNECTION);
    assert_int_equal(ref.index, 7);
    close(number);
    close(old[1]);
    close(new[1]);
}

/* The same, and it is libcurl's again. */
static void a_number_that_came_back_is_watched_anew(void **state)
{
    int old[2], new[2];
    (void)state;
    open_parked(old);
    open_readable(new);
    int number = old[0];
    assert_int_equal(dup2(new[0], number), number);
    close(new[0]);
    nothing_is_there(); /* the old one's watching went with it */
    assert_int_equal(event_loop_watch(&loop, number, EVENT_READABLE, upstream(number)), 0);
    assert_true(event_loop_is_wanted(&loop, number, next_event().stamp));
    close(number);
    close(old[1]);
    close(new[1]);
}

int main(void)
{
    struct failure why;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_parked_and_watched_again_is_heard),
        cmocka_unit_test(what_is_parked_is_taken_out_at_its_first_event),
        cmocka_unit_test(a_number_that_came_back_is_left_alone),
        cmocka_unit_test(a_number_that_came_back_is_watched_anew),
    };
    if (event_loop_open(&loop, &why) < 0)
        return 1;
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    event_loop_close(&loop);
    return result;
}
