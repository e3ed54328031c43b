/* Lines from a guest: known events, and lines that end the sandbox. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/text/encoding.h"
#include "qemu-harness/launcher/guest/control.h"

static struct control control;
static int guest;

static int start(void **state)
{
    struct failure why;
    int pair[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    int buffer = 4 * 1024 * 1024;
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    guest = pair[0];
    assert_int_equal(control_init(&control, -1, &why), 0);
    control_attach(&control, pair[1]);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    close(guest);
    control_destroy(&control);
    return 0;
}

static int say(const char *line, struct control_event *event, struct failure *why)
{
    assert_int_equal(write(guest, line, strlen(line)), strlen(line));
    assert_int_equal(write(guest, "\n", 1), 1);
    int result;
    do
        assert_true(control_receive(&control));
    while ((result = control_next(&control, event, why)) == 0);
    return result;
}

static void hello(void)
{
    struct control_event event;
    struct failure why;
    assert_int_equal(say("{\"event\":\"hello\",\"protocol\":1,\"version\":\"x\"}", &event, &why),
                     1);
    assert_int_equal(event.kind, EVENT_HELLO);
    assert_int_equal(control.state, CONTROL_OPEN);
}

static void empty_lines_are_skipped(void **state)
{
    struct control_event event;
    struct failure why;
    (void)state;
    assert_int_equal(
        say("\n\n{\"event\":\"hello\",\"protocol\":1,\"version\":\"x\"}", &event, &why), 1);
    assert_int_equal(event.kind, EVENT_HELLO);
    assert_int_equal(say("\n{\"event\":\"failed\",\"stage\":\"s\",\"error\":\"e\"}", &event, &why),
                     1);
    assert_int_equal(event.kind, EVENT_FAILED);
    assert_int_equal(control_next(&control, &event, &why), 0);
}

static void known_events(void **state)
{
    struct control_event event;
    struct failure why;
    (void)state;
    hello();
    assert_int_equal(say("{\"event\":\"stage\",\"name\":\"mounts\",\"ms\":1.3}", &event, &why), 1);
    assert_int_equal(event.kind, EVENT_STAGE);
    assert_string_equal(event.name, "mounts");
    assert_true(event.ms > 1.2 && event.ms < 1.4);
    assert_int_equal(say("{\"event\":\"failed\",\"stage\":\"s\",\"error\":\"e\\n\"}", &event, &why),
                     1);
    assert_string_equal(event.text, "e\n");
    assert_int_equal(say("{\"event\":\"exit\",\"code\":255}", &event, &why), 1);
    assert_int_equal(event.number, 255);
    assert_false(event.by_signal);
    assert_int_equal(say("{\"event\":\"exit\",\"signal\":9}", &event, &why), 1);
    assert_int_equal(event.number, 9);
    assert_true(event.by_signal);
    assert_int_equal(
        say("{\"event\":\"output\",\"stream\":\"stderr\",\"data\":\"AP8K\"}", &event, &why), 1);
    assert_int_equal(event.stream, STREAM_STDERR);
    assert_int_equal(event.length, 3);
    assert_memory_equal(event.data, "\x00\xff\n", 3);
    assert_int_equal(say("{\"event\":\"time\",\"number\":7}", &event, &why), 1);
    assert_int_equal(event.kind, EVENT_TIME);
    assert_int_equal(event.number, 7);
    assert_int_equal(say("{\"event\":\"from-the-future\",\"x\":{}}", &event, &why), 1);
    assert_int_equal(event.kind, EVENT_UNKNOWN);
}

static void broken_events(void **state)
{
    static const char *const lines[] = {
        " ",
        "hello",
        "{\"event\":\"stage\"",
        "[]",
        "{}",
        "{\"event\":\"exit\"}",
        "{\"event\":\"exit\",\"code\":256}",
        "{\"event\":\"exit\",\"code\":-1}",
        "{\"event\":\"exit\",\"signal\":0}",
        "{\"event\":\"exit\",\"signal\":65}",
        "{\"event\":\"exit\",\"code\":\"7\"}",
        "{\"event\":\"output\",\"data\":\"AA==\"}",
        "{\"event\":\"output\",\"stream\":\"stdin\",\"data\":\"AA==\"}",
        "{\"event\":\"output\",\"stream\":\"stdout\"}",
        "{\"event\":\"output\",\"stream\":\"stdout\",\"data\":\"A\"}",
        "{\"event\":\"output\",\"stream\":\"stdout\",\"data\":\"AB==\"}",
        "{\"event\":\"output\",\"stream\":\"stdout\",\"data\":7}",
        "{\"event\":\"credit\",\"bytes\":-5}",
        "{\"event\":\"credit\",\"bytes\":99999999999}",
        "{\"event\":\"time\"}",
        "{\"event\":\"time\",\"number\":0}",
        "{\"event\":\"time\",\"number\":\"1\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct control_event event;
        struct failure why = {""};
        if (i > 0)
            start(NULL);
        hello();
        assert_true(say(lines[i], &event, &why) < 0);
        assert_non_null(strstr(why.text, "guest"));
        if (i + 1 < sizeof(lines) / sizeof(lines[0]))
            stop(NULL);
    }
}

static void more_output_than_one_event_holds(void **state)
{
    static char line[3 * CONTROL_DATA_MAX], data[CONTROL_DATA_MAX + 3];
    static const char head[] = "{\"event\":\"output\",\"stream\":\"stdout\",\"data\":\"";
    struct control_event event;
    struct failure why;
    (void)state;
    hello();
    for (int extra = 0; extra <= 3; extra += 3) {
        strcpy(line, head);
        size_t length = sizeof(head) - 1;
        length += base64_encode(line + length, data, CONTROL_DATA_MAX + (size_t)extra);
        strcpy(line + length, "\"}");
        if (extra == 0) {
            assert_int_equal(say(line, &event, &why), 1);
            assert_int_equal(event.length, CONTROL_DATA_MAX);
        } else {
            assert_true(say(line, &event, &why) < 0);
        }
    }
}

static void an_endless_line(void **state)
{
    static char block[64 * 1024];
    struct control_event event;
    struct failure why;
    int result = 0;
    (void)state;
    hello();
    memset(block, ' ', sizeof(block));
    for (int i = 0; i < 20 && result == 0; i++) {
        assert_int_equal(write(guest, block, sizeof(block)), sizeof(block));
        assert_true(control_receive(&control));
        result = control_next(&control, &event, &why);
    }
    assert_int_equal(result, -EMSGSIZE);
}

static void hello_first_and_of_our_protocol(void **state)
{
    struct control_event event;
    struct failure why;
    (void)state;
    assert_int_equal(say("{\"event\":\"ready\"}", &event, &why), -EPROTO);
    stop(NULL);
    start(NULL);
    assert_int_equal(say("{\"event\":\"hello\",\"protocol\":2}", &event, &why), -EPROTONOSUPPORT);
}

static void a_connection_without_a_line(void **state)
{
    (void)state;
    assert_int_equal(write(guest, "{\"ev", 4), 4);
    assert_true(control_receive(&control));
    close(guest);
    assert_false(control_receive(&control));
    assert_int_equal(control.state, CONTROL_LISTENING);
    stop(NULL);
    start(NULL);
    hello();
    close(guest);
    assert_false(control_receive(&control));
    assert_int_equal(control.state, CONTROL_ENDED);
    guest = -1;
}

static void credit_bounds_input(void **state)
{
    static unsigned char data[CONTROL_DATA_MAX];
    struct control_event event;
    struct failure why;
    size_t sent = 0, room;
    (void)state;
    assert_int_equal(control_input_room(&control), 0); /* not before hello */
    hello();
    while ((room = control_input_room(&control)) > 0) {
        control_send_input(&control, data, room);
        sent += room;
    }
    assert_int_equal(sent, CONTROL_CREDIT_INITIAL);
    assert_false(control.overflow);
    assert_int_equal(say("{\"event\":\"credit\",\"stream\":\"stdin\",\"bytes\":10}", &event, &why),
                     1);
    assert_int_equal(control_input_room(&control), 10);
    assert_int_equal(say("{\"event\":\"credit\",\"bytes\":262144}", &event, &why), 1);
    assert_int_equal(control.input_credit,
                     CONTROL_CREDIT_INITIAL); /* never more than the initial credit */
}

static void a_guest_that_does_not_read(void **state)
{
    (void)state;
    hello();
    for (int i = 0; i < 100000 && !control.overflow; i++)
        control_send_time(&control, 1);
    assert_true(control.overflow);
}

static int64_t unix_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The line that the guest gets. */
static const char *line_sent(void)
{
    static char line[256];
    assert_true(control_flush(&control));
    ssize_t length = read(guest, line, sizeof(line) - 1);
    assert_true(length > 0);
    line[length] = '\0';
    return line;
}

static void the_time_is_that_of_sending(void **state)
{
    static const char config[] = "{\"protocol\":1}";
    int64_t before = unix_now();
    long long told = 0;
    int end = 0;
    (void)state;
    hello();
    control_send_config(&control, config, sizeof(config) - 1, true);
    sscanf(line_sent(), "{\"unix_ns\":%lld,\"protocol\":1}\n%n", &told, &end);
    assert_true(end > 0 && before <= told && told <= unix_now());
    control_send_config(&control, config, sizeof(config) - 1, false);
    assert_string_equal(line_sent(), "{\"protocol\":1}\n");
    before = unix_now();
    end = 0;
    control_send_time(&control, 7);
    sscanf(line_sent(), "{\"command\":\"time\",\"unix_ns\":%lld,\"number\":7}\n%n", &told, &end);
    assert_true(end > 0 && before <= told && told <= unix_now());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(empty_lines_are_skipped),
        TEST(known_events),
        TEST(broken_events),
        TEST(more_output_than_one_event_holds),
        TEST(an_endless_line),
        TEST(hello_first_and_of_our_protocol),
        TEST(a_connection_without_a_line),
        TEST(credit_bounds_input),
        TEST(a_guest_that_does_not_read),
        TEST(the_time_is_that_of_sending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
