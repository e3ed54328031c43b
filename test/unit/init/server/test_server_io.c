/* Unit tests of init/server/server_io.c: real pipes on the server's side, a socket pair as the
 * host's. */
#include "init/server/server_io.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/os/io.h"
#include "common/text/encoding.h"
#include "test/harness/control_close.h"

static struct control control;
static struct server_io io;
static int host, server_in, server_out, server_error; /* the other ends */

static int set_up(enum server_stdio mode)
{
    int pair[2], in[2], out[2], error[2];

    signal(SIGPIPE, SIG_IGN);
    memset(&control, 0, sizeof(control));
    memset(&io, 0, sizeof(io));
    if (control_open(&control) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
        pipe2(in, O_NONBLOCK) < 0 || pipe2(out, O_NONBLOCK) < 0 || pipe2(error, O_NONBLOCK) < 0)
        return -1;
    io_set_nonblocking(pair[0]);
    io_set_nonblocking(pair[1]);
    control_attach(&control, pair[0]);
    host = pair[1];
    server_in = in[0];
    server_out = out[1];
    server_error = error[1];
    server_io_open(&io, mode, in[1], out[0], error[0]);
    return 0;
}

static int set_up_pipe(void **state)
{
    (void)state;
    return set_up(STDIO_PIPE);
}

static int set_up_log(void **state)
{
    (void)state;
    return set_up(STDIO_LOG);
}

static int tear_down(void **state)
{
    (void)state;
    server_io_close(&io);
    control_close(&control);
    close(host);
    close(server_in);
    if (server_out >= 0)
        close(server_out);
    if (server_error >= 0)
        close(server_error);
    return 0;
}

/* One turn of the loop: poll without waiting, and the I/O. */
static void turn(void)
{
    struct pollfd polls[SERVER_IO_POLLS];

    assert_int_equal(control_flush(&control), 0);
    server_io_prepare(&io, &control, polls);
    poll(polls, SERVER_IO_POLLS, 0);
    server_io_run(&io, &control, polls);
    assert_int_equal(control_flush(&control), 0);
}

static const char *received(void)
{
    static char text[1024 * 1024];
    ssize_t got = read(host, text, sizeof(text) - 1);

    text[got > 0 ? got : 0] = '\0';
    return text;
}

static void streams_apart(void **state)
{
    (void)state;
    assert_int_equal(write(server_out, "out", 3), 3);
    assert_int_equal(write(server_error, "err", 3), 3);
    turn();
    turn();
    const char *text = received();
    assert_non_null(strstr(text, "\"stream\":\"stdout\",\"data\":\"b3V0\""));
    assert_non_null(strstr(text, "\"stream\":\"stderr\",\"data\":\"ZXJy\""));
    assert_int_equal(io.outputs[OUTPUT_STDOUT].credit, CONTROL_CREDIT_INITIAL - 3);
}

/* The pure rule. */
static void readable_rule(void **state)
{
    (void)state;
    assert_int_equal(server_io_readable(&io, OUTPUT_STDOUT, true), CONTROL_DATA_MAX);
    assert_int_equal(server_io_readable(&io, OUTPUT_STDOUT, false), 0);
    assert_int_equal(server_io_readable(&io, OUTPUT_TTY, true), 0);
    io.outputs[OUTPUT_STDOUT].credit = 5;
    assert_int_equal(server_io_readable(&io, OUTPUT_STDOUT, true), 5);
    io.outputs[OUTPUT_STDOUT].credit = 0;
    assert_int_equal(server_io_readable(&io, OUTPUT_STDOUT, true), 0);
    io.mode = STDIO_LOG;
    assert_int_equal(server_io_readable(&io, OUTPUT_STDOUT, false), CONTROL_DATA_MAX);
}

/* Writes to the server's end until it takes no more; the bytes that it took. */
static size_t stuff(int fd)
{
    static char bytes[65536];
    size_t total = 0;
    ssize_t put;

    while ((put = write(fd, bytes, sizeof(bytes))) > 0)
        total += (size_t)put;
    return total;
}

static void no_credit_no_read(void **state)
{
    size_t taken = 0;

    (void)state;
    for (int round = 0; round < 100; round++) {
        taken += stuff(server_out);
        turn();
        received();
    }
    assert_int_equal(io.outputs[OUTPUT_STDOUT].credit, 0);
    /* exactly the credit has left, the rest waits in the pipe, and the other stream is free */
    assert_true(taken >= CONTROL_CREDIT_INITIAL);
    assert_true(server_io_waits_for_host(&io, &control));
    assert_int_equal(write(server_error, "e", 1), 1);
    turn();
    assert_non_null(strstr(received(), "\"stream\":\"stderr\""));
    assert_int_equal(server_io_credit(&io, "stdout", 10), 0);
    turn();
    assert_non_null(strstr(received(), "\"data\":\"AAAAAAAAAAAAAA==\"")); /* ten bytes */
}

static void credit_commands(void **state)
{
    (void)state;
    assert_int_equal(server_io_credit(&io, "stdin", 1), -EINVAL);
    assert_int_equal(server_io_credit(&io, "tty", 1), -EINVAL);
    assert_int_equal(server_io_credit(&io, "stderr", 1), 0);
    assert_int_equal(io.outputs[OUTPUT_STDERR].credit, CONTROL_CREDIT_INITIAL + 1);
    assert_int_equal(server_io_credit(&io, "stderr", OUTPUT_CREDIT_MAX), 0);
    assert_int_equal(server_io_credit(&io, "stderr", OUTPUT_CREDIT_MAX), 0);
    assert_int_equal(io.outputs[OUTPUT_STDERR].credit, OUTPUT_CREDIT_MAX);
    assert_int_equal(server_io_resize(&io, 1, 1), -ENOTTY);
}

/* More than the credit is refused whole; what was given back can be sent again. */
static void input_credit(void **state)
{
    static char bytes[CONTROL_DATA_MAX], back[CONTROL_CREDIT_INITIAL + 1];
    size_t sent = 0, got = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 31);
    for (; sent < CONTROL_CREDIT_INITIAL; sent += sizeof(bytes))
        assert_int_equal(server_io_input(&io, bytes, sizeof(bytes)), 0);
    assert_int_equal(server_io_input(&io, bytes, 1), -EDQUOT);
    assert_int_equal(io.input.credit, 0);
    for (int round = 0; round < 20; round++) {
        ssize_t part = read(server_in, back + got, sizeof(back) - got);
        got += part > 0 ? (size_t)part : 0;
        turn();
    }
    assert_int_equal(got, CONTROL_CREDIT_INITIAL);
    for (size_t i = 0; i < got; i++)
        assert_int_equal(back[i], bytes[i % sizeof(bytes)]);
    assert_int_equal(io.input.credit, CONTROL_CREDIT_INITIAL);
    const char *text = received();
    assert_non_null(strstr(text, "{\"event\":\"credit\",\"stream\":\"stdin\",\"bytes\":"));
}

static void end_of_input_comes_last(void **state)
{
    static char bytes[CONTROL_DATA_MAX], back[8 * CONTROL_DATA_MAX];
    size_t got = 0;
    ssize_t part = -1;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(server_io_input(&io, bytes, sizeof(bytes)), 0);
    server_io_input_end(&io);
    assert_true(io.input.fd >= 0); /* more waits than the pipe takes */
    for (int round = 0; round < 20 && part != 0; round++) {
        part = read(server_in, back, sizeof(back));
        got += part > 0 ? (size_t)part : 0;
        turn();
    }
    assert_int_equal(part, 0);
    assert_int_equal(got, 4 * sizeof(bytes));
    assert_int_equal(server_io_input(&io, bytes, 5),
                     0); /* after its end: thrown away, credit comes back */
    assert_int_equal(io.input.used, 0);
}

static void server_that_closed_its_input(void **state)
{
    static char bytes[CONTROL_DATA_MAX];

    (void)state;
    close(server_in);
    server_in = open("/dev/null", O_RDONLY);
    for (int round = 0; round < 100; round++) {
        assert_int_equal(server_io_input(&io, bytes, sizeof(bytes)), 0);
        turn();
    }
    assert_int_equal(io.input.fd, -1);
}

static void drained(void **state)
{
    (void)state;
    assert_false(server_io_drained(&io));
    assert_int_equal(write(server_out, "last", 4), 4);
    close(server_out);
    close(server_error);
    server_out = server_error = -1;
    for (int round = 0; round < 4; round++)
        turn();
    assert_true(server_io_drained(&io));
    assert_non_null(strstr(received(), "\"bGFzdA==\""));
}

/* The end of a stream without credit is seen, but not before its bytes are out. */
static void drained_without_credit(void **state)
{
    (void)state;
    io.outputs[OUTPUT_STDOUT].credit = io.outputs[OUTPUT_STDERR].credit = 0;
    assert_int_equal(write(server_out, "last", 4), 4);
    close(server_out);
    close(server_error);
    server_out = server_error = -1;
    turn();
    assert_false(server_io_drained(&io));
    assert_int_equal(server_io_credit(&io, "stdout", 4), 0);
    turn();
    assert_true(server_io_drained(&io));
    assert_non_null(strstr(received(), "\"bGFzdA==\""));
}

/* Mode `log`: the writer never waits, whatever the host does; whole lines arrive, the rest is
 * counted. */
static void log_never_blocks(void **state)
{
    char line[128];
    long written = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        int length = snprintf(line, sizeof(line), "line %d\n", round);
        assert_int_equal(write(server_out, line, (size_t)length), length);
        written++;
        if (round % 50 == 0)
            turn();
    }
    assert_false(control_output_free(&control)); /* the host reads nothing: the socket is full */
    long dropped = io.logs[OUTPUT_STDOUT].dropped;
    assert_true(dropped > 0);
    close(server_out);
    close(server_error);
    server_out = server_error = -1;
    for (int round = 0; round < 2000 && !server_io_drained(&io); round++) {
        turn();
        received();
    }
    assert_true(server_io_drained(&io));
    assert_int_equal(io.logs[OUTPUT_STDOUT].dropped, 0); /* told */
}

/* Lines in the output events of a text, and those that its `dropped` events count. */
static long lines_told(char *text)
{
    long lines = 0;

    for (char *at = text; (at = strstr(at, "\"data\":\""));) {
        at += strlen("\"data\":\"");
        size_t length = strcspn(at, "\"");
        int bytes = base64_decode(at, length, at, length);
        for (int i = 0; i < bytes; i++)
            lines += at[i] == '\n';
        at += length;
    }
    return lines;
}

static long lines_dropped(const char *text)
{
    long lines = 0;

    for (; (text = strstr(text, "\"lines\":")); text++)
        lines += strtol(text + strlen("\"lines\":"), NULL, 10);
    return lines;
}

/* What is given up at the end is counted too: lines told and lines dropped are all that were
 * written. */
static void log_given_up_is_counted(void **state)
{
    static char all[2 * 1024 * 1024];
    char *end = all;
    const int count = 40000;

    (void)state;
    for (int round = 0; round < count; round++) {
        assert_int_equal(write(server_out, "some line of the log\n", 21), 21);
        if (round % 500 == 0)
            turn();
    }
    turn();
    assert_true(io.logs[OUTPUT_STDOUT].end > 0);
    server_io_give_up(&io, &control);
    for (int round = 0; round < 100; round++) {
        assert_int_equal(control_flush(&control), 0);
        end = stpcpy(end, received());
    }
    long dropped = lines_dropped(all);
    assert_true(dropped > 0);
    assert_int_equal(lines_told(all) + dropped, count);
}

#define PIPE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_pipe, tear_down)
#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_log, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PIPE_TEST(streams_apart),
        PIPE_TEST(readable_rule),
        PIPE_TEST(no_credit_no_read),
        PIPE_TEST(credit_commands),
        PIPE_TEST(input_credit),
        PIPE_TEST(end_of_input_comes_last),
        PIPE_TEST(server_that_closed_its_input),
        PIPE_TEST(drained),
        PIPE_TEST(drained_without_credit),
        LOG_TEST(log_never_blocks),
        LOG_TEST(log_given_up_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
