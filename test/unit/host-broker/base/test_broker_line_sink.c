/* Lines to a pipe that is read late or never. */
#include "test/harness/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host-broker/base/line_sink.h"

static struct line_sink sink;

static void add_number(int number)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "line number %08d\n", number);
    line_sink_add(&sink, line, (size_t)length);
}

static void lines_pass(void **state)
{
    (void)state;
    int ends[2];
    char text[64];
    assert_int_equal(pipe(ends), 0);
    line_sink_init(&sink, ends[1]);
    line_sink_add(&sink, "one\n", 4);
    line_sink_add(&sink, "two\n", 4);
    assert_int_equal(line_sink_flush(&sink), 8);
    assert_true(line_sink_is_empty(&sink));
    assert_int_equal(read(ends[0], text, sizeof(text)), 8);
    assert_memory_equal(text, "one\ntwo\n", 8);
    close(ends[0]);
    close(ends[1]);
}

/* A blocking pipe: a flush that waited would never return. */
static void a_full_pipe_does_not_block_and_loses_whole_lines(void **state)
{
    (void)state;
    enum { LINES = 20000 };
    static char text[LINES * 32];
    int ends[2], number = 0;
    size_t length = 0;
    assert_int_equal(pipe(ends), 0);
    line_sink_init(&sink, ends[1]);
    for (; number < LINES; number++) {
        add_number(number);
        line_sink_flush(&sink);
    }
    assert_true(sink.dropped > 0);
    uint64_t expected = LINES - sink.dropped;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    for (ssize_t got; (got = read(ends[0], text + length, sizeof(text) - length)) > 0;) {
        length += (size_t)got;
        line_sink_flush(&sink);
    }
    assert_true(line_sink_is_empty(&sink));
    int next = 0;
    for (char *line = text; line < text + length; line = strchr(line, '\n') + 1, next++) {
        int found = -1;
        assert_int_equal(sscanf(line, "line number %8d\n", &found), 1);
        assert_int_equal(found, next); /* in order from the first one, none is cut */
    }
    assert_int_equal(next, expected);
    close(ends[0]);
    close(ends[1]);
}

static void after_the_reader_has_closed_lines_are_dropped(void **state)
{
    (void)state;
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    line_sink_init(&sink, ends[1]);
    close(ends[0]);
    add_number(1);
    line_sink_flush(&sink);
    assert_int_equal(sink.fd, -1);
    add_number(2);
    assert_int_equal(sink.dropped, 0);
    close(ends[1]);
}

static void an_oversized_line_is_dropped(void **state)
{
    (void)state;
    static char line[LINE_SINK_LINE_MAX + 1];
    line_sink_init(&sink, STDERR_FILENO);
    line_sink_add(&sink, line, sizeof(line));
    assert_int_equal(sink.dropped, 1);
    assert_true(line_sink_is_empty(&sink));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_pass),
        cmocka_unit_test(a_full_pipe_does_not_block_and_loses_whole_lines),
        cmocka_unit_test(after_the_reader_has_closed_lines_are_dropped),
        cmocka_unit_test(an_oversized_line_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
