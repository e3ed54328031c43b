/* Parked watches, and numbers of descriptors that are reused. */
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

/* Makes a pair of sockets, the first of which is readable. */
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

/* Waits for exactly one event. */
static struct event_ref next_event(void)
{
    assert_int_equal(event_loop_wait(&loop, loop.now), 1);
    return loop.ready[0].ref;
}

static void assert_no_event(void)
{
    assert_int_equal(event_loop_wait(&loop, loop.now), 0);
}

static void a_parked_watch_can_be_taken_over(void **state)
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
    assert_no_event();
}

static void open_parked(int ends[2])
{
    open_readable(ends);
    assert_int_equal(event_loop_watch(&loop, ends[0], EVENT_READABLE, upstream(ends[0])), 0);
    event_loop_park(&loop, ends[0]);
}

static void a_parked_watch_is_removed_at_its_first_event(void **state)
{
    int ends[2];
    (void)state;
    open_parked(ends);
    assert_false(event_loop_is_wanted(&loop, ends[0], next_event().stamp));
    assert_no_event();
    assert_int_equal(event_loop_watch(&loop, ends[0], EVENT_READABLE, upstream(ends[0])), 0);
    assert_true(event_loop_is_wanted(&loop, ends[0], next_event().stamp));
    close_both(ends);
}

/* The socket is closed without a call while its watch is parked and an event of it is pending. */
static void an_event_of_an_earlier_watch_does_not_remove_a_later_one(void **state)
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

/* As above, and the new socket is libcurl's too. */
static void a_reused_number_can_be_watched_again(void **state)
{
    int old[2], new[2];
    (void)state;
    open_parked(old);
    open_readable(new);
    int number = old[0];
    assert_int_equal(dup2(new[0], number), number);
    close(new[0]);
    assert_no_event(); /* the kernel has removed the old watch */
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
        cmocka_unit_test(a_parked_watch_can_be_taken_over),
        cmocka_unit_test(a_parked_watch_is_removed_at_its_first_event),
        cmocka_unit_test(an_event_of_an_earlier_watch_does_not_remove_a_later_one),
        cmocka_unit_test(a_reused_number_can_be_watched_again),
    };
    if (event_loop_open(&loop, &why) < 0)
        return 1;
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    event_loop_close(&loop);
    return result;
}
