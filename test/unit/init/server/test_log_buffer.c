/* Unit tests of init/server/log_buffer.c: whole lines stay whole, what does not fit is dropped and
 * counted. */
#include "init/server/log_buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct log_buffer buffer;

static int clear(void **state)
{
    (void)state;
    memset(&buffer, 0, sizeof(buffer));
    return 0;
}

static void put(const char *text)
{
    log_buffer_write(&buffer, text, strlen(text));
}

/* Takes what is ready and compares. */
static void takes(const char *expected)
{
    size_t length;
    const char *bytes = log_buffer_peek(&buffer, SIZE_MAX, &length);

    assert_int_equal(length, strlen(expected));
    if (length > 0)
        assert_memory_equal(bytes, expected, length);
    log_buffer_remove(&buffer, length);
}

static void lines_pass(void **state)
{
    (void)state;
    takes("");
    put("one\ntwo\n");
    takes("one\ntwo\n");
    takes("");
    put("a\nb");
    takes("a\n");
    takes("b"); /* a prompt: no newline will come */
    put("c\n");
    takes("c\n");
    assert_int_equal(log_buffer_take_dropped(&buffer), 0);
}

static void pieces(void **state)
{
    size_t length;

    (void)state;
    put("0123456789\n");
    assert_memory_equal(log_buffer_peek(&buffer, 4, &length), "0123", 4);
    assert_int_equal(length, 4);
    log_buffer_remove(&buffer, 4);
    takes("456789\n");
}

/* A piece ends at the end of a line where it can. */
static void pieces_end_with_lines(void **state)
{
    size_t length;

    (void)state;
    put("one\ntwo\nthree\n");
    assert_memory_equal(log_buffer_peek(&buffer, 10, &length), "one\ntwo\n", 8);
    assert_int_equal(length, 8);
}

static void drop_all(void **state)
{
    size_t length;

    (void)state;
    assert_int_equal(log_buffer_drop_all(&buffer), 0);
    put("one\ntwo\nhalf");
    assert_int_equal(log_buffer_drop_all(&buffer), 3);
    assert_null(log_buffer_peek(&buffer, SIZE_MAX, &length));
}

/* Fills it with lines of 64 bytes; returns how many went in. */
static int fill(void)
{
    char line[65];
    int count = 0;

    for (; count < LOG_BUFFER_SIZE / 64; count++) {
        snprintf(line, sizeof(line), "%063d\n", count);
        put(line);
    }
    return count;
}

static void full_drops_whole_lines(void **state)
{
    size_t length;

    (void)state;
    int count = fill();
    put("this one ");
    put("does not ");
    put("fit\nnor this\n");
    assert_int_equal(log_buffer_take_dropped(&buffer), 2);
    assert_int_equal(log_buffer_take_dropped(&buffer), 0);
    log_buffer_peek(&buffer, 64, &length);
    log_buffer_remove(&buffer, length);
    put("fits\n");
    const char *bytes = log_buffer_peek(&buffer, SIZE_MAX, &length);
    assert_int_equal(length, (size_t)(count - 1) * 64 + 5);
    assert_memory_equal(bytes + length - 5, "fits\n", 5);
}

/* A line that is half there when the room ends is taken back. */
static void half_a_line_is_taken_back(void **state)
{
    size_t length;

    (void)state;
    fill();
    log_buffer_peek(&buffer, 64, &length);
    log_buffer_remove(&buffer, length);
    put("sixty bytes of a line that will turn out to be too long for ");
    put("the room that there is\nshort\n");
    assert_int_equal(log_buffer_take_dropped(&buffer), 1);
    const char *bytes = log_buffer_peek(&buffer, SIZE_MAX, &length);
    assert_memory_equal(bytes + length - 6, "short\n", 6);
    assert_int_equal(bytes[length - 7], '\n');
}

/* A line longer than everything is cut, not lost, while the reader keeps up. */
static void giant_line(void **state)
{
    const size_t size = 3 * LOG_BUFFER_SIZE;
    char *line = malloc(size), *got = malloc(size);
    size_t taken = 0, length;

    (void)state;
    for (size_t i = 0; i < size; i++)
        line[i] = (char)('a' + i % 26);
    line[size - 1] = '\n';
    for (size_t at = 0; at < size; at += 32768) {
        log_buffer_write(&buffer, line + at, 32768);
        const char *bytes = log_buffer_peek(&buffer, SIZE_MAX, &length);
        memcpy(got + taken, bytes, length);
        taken += length;
        log_buffer_remove(&buffer, length);
    }
    assert_int_equal(taken, size);
    assert_memory_equal(got, line, size);
    assert_int_equal(log_buffer_take_dropped(&buffer), 0);
    /* and when nobody reads: the first piece stays, the rest is one dropped line */
    log_buffer_write(&buffer, line, size);
    put("next\n");
    assert_int_equal(log_buffer_take_dropped(&buffer), 2);
    log_buffer_peek(&buffer, SIZE_MAX, &length);
    assert_int_equal(length, LOG_BUFFER_SIZE);
    free(line);
    free(got);
}

/* Against a model: whatever the sizes and the reader's pace, lines that come out are lines that
 * went in, in order, and lines out and lines dropped are all of them. */
static void any_pace(void **state)
{
    char line[600];
    unsigned seed = 7;
    long out = 0, dropped = 0, in = 0;
    size_t length;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        seed = seed * 1103515245 + 12345;
        size_t size = 16 + (seed >> 16) % 500;
        memset(line, 'x', size);
        snprintf(line, 16, "%014d", round);
        line[14] = ':';
        line[size - 1] = '\n';
        size_t half = size / 2;
        log_buffer_write(&buffer, line, half);
        log_buffer_write(&buffer, line + half, size - half);
        in++;
        if ((seed >> 8) % 3 != 0)
            continue;
        const char *bytes = log_buffer_peek(&buffer, (seed >> 12) % 900, &length);
        for (size_t i = 0; i < length; i++)
            out += bytes[i] == '\n';
        log_buffer_remove(&buffer, length);
        dropped += log_buffer_take_dropped(&buffer);
    }
    while (log_buffer_peek(&buffer, SIZE_MAX, &length)) {
        for (size_t i = 0; i < length; i++)
            out += buffer.bytes[buffer.start + i] == '\n';
        log_buffer_remove(&buffer, length);
    }
    dropped += log_buffer_take_dropped(&buffer);
    assert_true(dropped > 0);
    assert_int_equal(out + dropped, in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lines_pass, clear),
        cmocka_unit_test_setup(pieces, clear),
        cmocka_unit_test_setup(pieces_end_with_lines, clear),
        cmocka_unit_test_setup(drop_all, clear),
        cmocka_unit_test_setup(full_drops_whole_lines, clear),
        cmocka_unit_test_setup(half_a_line_is_taken_back, clear),
        cmocka_unit_test_setup(giant_line, clear),
        cmocka_unit_test_setup(any_pace, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
