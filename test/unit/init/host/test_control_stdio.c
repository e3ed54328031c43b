/* The control channel over standard input and output: nothing waits, nobody else's description
 * changes, and the end of one direction leaves the other. Each test replaces descriptors 0 and 1,
 * and puts them back. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "init/host/control_stdio.h"
#include "init/host/events.h"
#include "test/harness/control_close.h"

static struct control control;
static int saved[2], host_in, host_out; /* the host writes to the first and reads from the second */

/* Makes these our standard input and output, keeps copies of the host's ends, and attaches. */
static void attach(int in, int out)
{
    struct failure why;

    assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
    close(in);
    if (out != in)
        close(out);
    assert_int_equal(control_attach_stdio(&control, &why), 0);
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    saved[0] = dup(STDIN_FILENO);
    saved[1] = dup(STDOUT_FILENO);
    memset(&control, 0, sizeof(control));
    return control_open(&control);
}

static int tear_down(void **state)
{
    (void)state;
    control_close(&control);
    for (int fd = 0; fd < 2; fd++) {
        dup2(saved[fd], fd);
        close(saved[fd]);
    }
    close(host_in);
    if (host_out != host_in)
        close(host_out);
    return 0;
}

static void attach_pipes(void)
{
    int in[2], out[2];

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    host_in = in[1];
    host_out = out[0];
    attach(in[0], out[1]);
}

static void attach_socket(void)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    host_in = host_out = pair[1];
    attach(pair[0], pair[0]);
}

static void stays_blocking(void)
{
    for (int fd = 0; fd < 2; fd++)
        assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_true(control.fd > STDERR_FILENO && control.out_fd > STDERR_FILENO);
    assert_true((fcntl(control.fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_true((fcntl(control.out_fd, F_GETFD) & FD_CLOEXEC) != 0);
}

/* Nothing is there: no wait. A line: it comes. More output than anybody takes: no wait either, and
 * nothing is lost. */
static void talks_without_waiting(void)
{
    static char text[CONTROL_EVENTS_SIZE], read_back[4 * CONTROL_EVENTS_SIZE];
    char *line;
    size_t length, got = 0, sent = 0;

    stays_blocking();
    assert_int_equal(control_receive(&control), 0);
    assert_int_equal(control_next_line(&control, &line, &length), 0);
    assert_int_equal(write(host_in, "{\"a\":1}\n", 8), 8);
    assert_int_equal(control_receive(&control), 0);
    assert_int_equal(control_next_line(&control, &line, &length), 1);
    assert_int_equal(length, 7);

    memset(text, 'x', 30000);
    text[30000] = '\0';
    while (sent < 20 && event_failed(&control, "base", text) == 0) {
        assert_int_equal(control_flush(&control), 0);
        sent++;
    }
    assert_true(control_wants_write(&control));
    while (control_wants_write(&control)) {
        ssize_t piece = read(host_out, read_back, 1000);
        assert_true(piece > 0);
        got += (size_t)piece;
        assert_int_equal(control_flush(&control), 0);
    }
    fcntl(host_out, F_SETFL, O_NONBLOCK);
    for (ssize_t piece; (piece = read(host_out, read_back, sizeof(read_back))) > 0;)
        got += (size_t)piece;
    assert_true(sent > 2);
    assert_int_equal(got, sent * (30000 + strlen("{\"event\":\"failed\",\"stage\":\"base\","
                                                 "\"error\":\"\"}\n")));
}

static void pipes(void **state)
{
    (void)state;
    attach_pipes();
    talks_without_waiting();
}

static void sockets(void **state)
{
    (void)state;
    attach_socket();
    assert_int_equal(control.in_how, CONTROL_IO_SOCKET);
    talks_without_waiting();
}

/* As a device that can be opened once is used. */
static void waited(void **state)
{
    (void)state;
    attach_pipes();
    int in = dup(STDIN_FILENO), out = dup(STDOUT_FILENO);
    control_attach_pair(&control, in, CONTROL_IO_WAITED, out, CONTROL_IO_WAITED);
    fcntl(in, F_SETFD, FD_CLOEXEC);
    fcntl(out, F_SETFD, FD_CLOEXEC);
    talks_without_waiting();
}

static void a_terminal_is_raw_until_the_end(void **state)
{
    struct termios before, now;
    int host = posix_openpt(O_RDWR | O_NOCTTY);

    (void)state;
    assert_true(host >= 0 && grantpt(host) == 0 && unlockpt(host) == 0);
    int terminal = open(ptsname(host), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && tcgetattr(terminal, &before) == 0);
    assert_true((before.c_lflag & ECHO) != 0);
    host_in = host_out = host;
    attach(terminal, terminal);
    stays_blocking();
    assert_int_equal(tcgetattr(STDIN_FILENO, &now), 0);
    assert_int_equal(now.c_lflag & (ECHO | ICANON | ISIG), 0);
    control_restore_terminal();
    assert_int_equal(tcgetattr(STDIN_FILENO, &now), 0);
    assert_int_equal(now.c_lflag, before.c_lflag);
    assert_int_equal(now.c_iflag, before.c_iflag);
    assert_int_equal(now.c_oflag, before.c_oflag);
}

/* The host's end of input is noticed, and what is still to be said arrives. */
static void the_end_of_input_leaves_the_output(void **state)
{
    char text[200];

    (void)state;
    attach_pipes();
    close(host_in);
    host_in = host_out;
    assert_int_equal(control_receive(&control), -EPIPE);
    assert_true(control.ended);
    assert_int_equal(control.fd, -1);
    assert_true(control_write_fd(&control) >= 0);
    assert_int_equal(event_exit(&control, 7 << 8), 0);
    assert_int_equal(control_flush(&control), 0);
    ssize_t got = read(host_out, text, sizeof(text));
    assert_int_equal(got, strlen("{\"event\":\"exit\",\"code\":7}\n"));
    assert_memory_equal(text, "{\"event\":\"exit\",\"code\":7}\n", (size_t)got);
}

/* Nobody reads any more: the whole channel is at its end. */
static void the_end_of_output_is_the_end(void **state)
{
    (void)state;
    attach_pipes();
    close(host_out);
    host_out = host_in;
    assert_int_equal(event_hello(&control), 0);
    assert_int_equal(control_flush(&control), -EPIPE);
    assert_true(control.ended);
    assert_int_equal(control_write_fd(&control), -1);
    assert_int_equal(control_flush(&control), -EPIPE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pipes),
        TEST(sockets),
        TEST(waited),
        TEST(a_terminal_is_raw_until_the_end),
        TEST(the_end_of_input_leaves_the_output),
        TEST(the_end_of_output_is_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
