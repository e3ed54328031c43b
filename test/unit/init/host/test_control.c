/* Unit tests of init/host/control.c and events.c over a socket pair: framing, the order of the
 * queues, bounds, the end of the channel; and of the port on the kernel command line
 * (control_dial.c). */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/io.h"
#include "init/host/control_dial.h"
#include "init/host/events.h"
#include "test/harness/control_close.h"

static struct control control;
static int host;

static int connect_pair(void **state)
{
    int pair[2];

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    memset(&control, 0, sizeof(control));
    if (control_open(&control) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    io_set_nonblocking(pair[0]);
    io_set_nonblocking(pair[1]);
    control_attach(&control, pair[0]);
    host = pair[1];
    return 0;
}

static int disconnect(void **state)
{
    (void)state;
    control_close(&control);
    close(host);
    return 0;
}

/* All that the host has received so far; static storage. */
static const char *received(void)
{
    static char text[512 * 1024];
    ssize_t got = read(host, text, sizeof(text) - 1);

    text[got > 0 ? got : 0] = '\0';
    return text;
}

static void sends(const char *expected)
{
    assert_int_equal(control_flush(&control), 0);
    assert_string_equal(received(), expected);
}

static void event_texts(void **state)
{
    const struct boot_way_in none = {.present = false};
    struct boot_way_in way_in = {.present = true,
                                 .listen = {.kind = ENDPOINT_VSOCK, .cid = ~0u, .port = 4096}};
    struct check_report report = {.count = 2, .checks = {{"a", true, "x"}, {"b", false, ""}}};

    (void)state;
    event_hello(&control);
    sends("{\"event\":\"hello\",\"protocol\":1,\"version\":\"" CODEV_VERSION "\"}\n");
    event_stage(&control, "mounts", 1340000);
    sends("{\"event\":\"stage\",\"name\":\"mounts\",\"ms\":1.3}\n");
    event_ready(&control, 61200000, &way_in, &report);
    sends("{\"event\":\"ready\",\"boot_ms\":61.2,\"way_in\":\"vsock:4096\",\"checks\":"
          "[{\"name\":\"a\",\"ok\":true,\"detail\":\"x\"},{\"name\":\"b\",\"ok\":false}]}\n");
    report.count = 0;
    event_ready(&control, 0, &none, &report);
    sends("{\"event\":\"ready\",\"boot_ms\":0.0,\"way_in\":null,\"checks\":[]}\n");
    event_failed(&control, "firewall", "a \"b\"\n");
    sends("{\"event\":\"failed\",\"stage\":\"firewall\",\"error\":\"a \\\"b\\\"\\n\"}\n");
    event_warning(&control, "w");
    event_firewall(&control, "restored");
    event_dropped(&control, 7);
    event_input_credit(&control, 65536);
    sends(
        "{\"event\":\"warning\",\"text\":\"w\"}\n{\"event\":\"firewall\",\"state\":\"restored\"}\n"
        "{\"event\":\"dropped\",\"lines\":7}\n{\"event\":\"credit\",\"stream\":\"stdin\",\"bytes\":"
        "65536}\n");
    event_exit(&control, 7 << 8);
    event_exit(&control, 9);
    event_exit(&control, 11 | 0x80); /* with a core */
    sends("{\"event\":\"exit\",\"code\":7}\n{\"event\":\"exit\",\"signal\":9}\n{\"event\":\"exit\","
          "\"signal\":11}\n");
}

static void output_text(void **state)
{
    (void)state;
    assert_true(control_output_free(&control));
    control_output_put(&control, "stdout", "hello\n", 6);
    assert_false(control_output_free(&control));
    sends("{\"event\":\"output\",\"stream\":\"stdout\",\"data\":\"aGVsbG8K\"}\n");
    assert_true(control_output_free(&control));
    control_output_put(&control, "tty", "\xff\x00\x80", 3);
    sends("{\"event\":\"output\",\"stream\":\"tty\",\"data\":\"/wCA\"}\n");
}

/* Fills the socket until it takes no more, with output; returns the bytes on their way. */
static void fill_socket(void)
{
    static char bytes[CONTROL_DATA_MAX];

    while (control_output_free(&control)) {
        control_output_put(&control, "stdout", bytes, sizeof(bytes));
        assert_int_equal(control_flush(&control), 0);
    }
}

/* A line that is partly out is finished; the events come next, however long they waited behind
 * it. */
static void events_overtake_output(void **state)
{
    static char all[1 << 20];
    size_t length = 0;

    (void)state;
    fill_socket();
    assert_true(control_wants_write(&control));
    event_warning(&control, "first");
    event_exit(&control, 0);
    while (control_wants_write(&control)) {
        const char *text = received();
        length = (size_t)(stpcpy(all + length, text) - all);
        assert_int_equal(control_flush(&control), 0);
    }
    stpcpy(all + length, received());
    const char *warning = strstr(all, "{\"event\":\"warning\"");
    assert_non_null(warning);
    assert_int_equal(warning[-1], '\n');
    assert_string_equal(
        warning, "{\"event\":\"warning\",\"text\":\"first\"}\n{\"event\":\"exit\",\"code\":0}\n");
}

/* Output of which no byte is out yet waits for the events. */
static void events_before_waiting_output(void **state)
{
    (void)state;
    control_output_put(&control, "stderr", "x", 1);
    event_warning(&control, "w");
    sends("{\"event\":\"warning\",\"text\":\"w\"}\n{\"event\":\"output\",\"stream\":\"stderr\","
          "\"data\":\"eA==\"}\n");
}

static void output_is_forgotten_only_whole(void **state)
{
    (void)state;
    control_output_put(&control, "stdout", "x", 1);
    assert_true(control_output_forget(&control));
    assert_false(control_output_forget(&control));
    assert_true(control_output_free(&control));
    sends("");
    fill_socket();
    assert_false(control_output_forget(&control)); /* a part is out: the frame must be finished */
    assert_false(control_output_free(&control));
}

/* Warnings are lost before anything else is, and a full queue is an error, not a broken line. */
static void bounds(void **state)
{
    char text[1000];
    int warnings = 0, others = 0;

    (void)state;
    fill_socket();
    received();
    memset(text, 'w', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    while (event_warning(&control, text) == 0)
        warnings++;
    assert_in_range(warnings, 20, CONTROL_EVENTS_SIZE / 1000);
    while (event_failed(&control, "s", text) == 0)
        others++;
    assert_in_range(others, CONTROL_EVENTS_RESERVE / 1100, CONTROL_EVENTS_SIZE / 1000);
    assert_int_equal(event_failed(&control, "s", text), -ENOBUFS);
    unsigned lines = 0, begins = 0;
    while (control_wants_write(&control)) {
        assert_int_equal(control_flush(&control), 0);
        const char *part = received();
        for (const char *at = part; *at != '\0'; at++)
            lines += *at == '\n';
        for (const char *at = part; (at = strstr(at, "{\"event\":")); at++)
            begins++;
    }
    assert_true(lines >= (unsigned)(warnings + others));
    assert_int_equal(event_failed(&control, "s", text), 0); /* there is room again */
}

static void lines_in_pieces(void **state)
{
    char *line;
    size_t length;

    (void)state;
    assert_int_equal(control_next_line(&control, &line, &length), 0);
    assert_int_equal(write(host, "{\"a\":1", 6), 6);
    assert_int_equal(control_receive(&control), 0);
    assert_int_equal(control_next_line(&control, &line, &length), 0);
    assert_int_equal(write(host, "}\n{}\n\n", 6), 6);
    assert_int_equal(control_receive(&control), 0);
    assert_int_equal(control_next_line(&control, &line, &length), 1);
    assert_string_equal(line, "{\"a\":1}");
    assert_int_equal(control_next_line(&control, &line, &length), 1);
    assert_string_equal(line, "{}");
    assert_int_equal(control_next_line(&control, &line, &length), 1);
    assert_int_equal(length, 0);
    assert_int_equal(control_next_line(&control, &line, &length), 0);
    assert_int_equal(control_receive(&control), 0); /* nothing there: no error */
}

/* Lines up to the limit pass; one that is longer is an error. */
static void long_lines(void **state)
{
    static char bytes[CONTROL_LINE_MAX + 1];
    char *line;
    size_t length, sent = 0;
    int result = 0;

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    bytes[CONTROL_LINE_MAX - 1] = '\n';
    while (result == 0) {
        ssize_t put = write(host, bytes + sent, CONTROL_LINE_MAX - sent);
        sent += put > 0 ? (size_t)put : 0;
        assert_int_equal(control_receive(&control), 0);
        result = control_next_line(&control, &line, &length);
    }
    assert_int_equal(result, 1);
    assert_int_equal(length, CONTROL_LINE_MAX - 1);
    bytes[CONTROL_LINE_MAX - 1] = 'x';
    for (sent = 0, result = 0; result == 0;) {
        ssize_t put = write(host, bytes + sent, sizeof(bytes) - sent);
        sent += put > 0 ? (size_t)put : 0;
        assert_int_equal(control_receive(&control), 0);
        result = control_next_line(&control, &line, &length);
    }
    assert_int_equal(result, -EMSGSIZE);
    /* it can be left behind: its end is a line of its own, and what follows is whole */
    for (result = 0; result == 0; result = control_next_line(&control, &line, &length)) {
        if (write(host, "\n{}\n", 4) < 0)
            continue;
        assert_int_equal(control_receive(&control), 0);
    }
    assert_int_equal(result, 1);
    assert_in_range(length, 0, 1);
    assert_int_equal(control_next_line(&control, &line, &length), 1);
    assert_string_equal(line, "{}");
}

/* After a long line its bytes, which were secrets, are in memory no more. */
static void long_line_leaves_nothing(void **state)
{
    static char bytes[400 * 1024];
    char *line;
    size_t length, sent = 0;

    (void)state;
    memset(bytes, 's', sizeof(bytes));
    bytes[sizeof(bytes) - 1] = '\n';
    while (control_next_line(&control, &line, &length) == 0) {
        ssize_t put = write(host, bytes + sent, sizeof(bytes) - sent);
        sent += put > 0 ? (size_t)put : 0;
        assert_int_equal(control_receive(&control), 0);
    }
    assert_int_equal(control_receive(&control), 0);
    for (size_t i = 0; i < sizeof(bytes); i++)
        assert_int_equal(control.in.bytes[i], 0);
}

static void end_of_channel(void **state)
{
    (void)state;
    assert_int_equal(write(host, "{}\n", 3), 3);
    shutdown(host, SHUT_RDWR);
    assert_int_equal(control_receive(&control), 0);
    char *line;
    size_t length;
    assert_int_equal(control_next_line(&control, &line, &length), 1); /* what came before counts */
    assert_int_equal(control_receive(&control), -EPIPE);
    assert_true(control.ended);
    assert_int_equal(control.fd, -1);
    /* nothing waits any more, and nothing fails */
    control_output_put(&control, "stdout", "x", 1);
    assert_true(control_output_free(&control));
    event_warning(&control, "w");
    assert_false(control_wants_write(&control));
    assert_int_equal(control_flush(&control), -EPIPE);
}

static void write_to_a_host_that_left(void **state)
{
    (void)state;
    shutdown(host, SHUT_RDWR);
    event_warning(&control, "w");
    assert_true(control_flush(&control) < 0);
    assert_true(control.ended);
}

static void queued_before_attach(void **state)
{
    int first = control.fd;

    (void)state;
    control.fd = -1;
    event_hello(&control);
    event_stage(&control, "base", 0);
    assert_int_equal(control_flush(&control), 0);
    assert_false(control_wants_write(&control));
    control_attach(&control, first);
    sends("{\"event\":\"hello\",\"protocol\":1,\"version\":\"" CODEV_VERSION
          "\"}\n{\"event\":\"stage\",\"name\":\"base\",\"ms\":0.0}\n");
}

static void port_is(const char *command_line, int result, uint32_t port)
{
    uint32_t found = 1;

    assert_int_equal(control_port_find(command_line, &found), result);
    if (result == 0)
        assert_int_equal(found, port);
}

static void command_line_port(void **state)
{
    (void)state;
    port_is("", 0, CONTROL_PORT_DEFAULT);
    port_is("console=ttyS0 quiet\n", 0, CONTROL_PORT_DEFAULT);
    port_is("codev.control=vsock:50117\n", 0, 50117);
    port_is("a=b codev.control=vsock:7 c=d", 0, 7);
    port_is("codev.control=vsock:7 codev.control=vsock:8", 0, 8);
    port_is("xcodev.control=vsock:7", 0, CONTROL_PORT_DEFAULT);
    port_is("codev.control=vsock:4294967294", 0, 4294967294u);
    port_is("codev.control=vsock:4294967295", -EINVAL, 0);
    port_is("codev.control=vsock:0", -EINVAL, 0);
    port_is("codev.control=vsock:", -EINVAL, 0);
    port_is("codev.control=vsock:-1", -EINVAL, 0);
    port_is("codev.control=vsock:+1", -EINVAL, 0);
    port_is("codev.control=vsock:12x", -EINVAL, 0);
    port_is("codev.control=vsock:99999999999999999999", -EINVAL, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, connect_pair, disconnect)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(event_texts),
        TEST(output_text),
        TEST(events_overtake_output),
        TEST(events_before_waiting_output),
        TEST(output_is_forgotten_only_whole),
        TEST(bounds),
        TEST(lines_in_pieces),
        TEST(long_lines),
        TEST(long_line_leaves_nothing),
        TEST(end_of_channel),
        TEST(write_to_a_host_that_left),
        TEST(queued_before_attach),
        cmocka_unit_test(command_line_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
