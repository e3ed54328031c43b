/* The ring of the guest's console: which lines are shown, and that they are escaped. */
#include "test/harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qemu-harness/launcher/machine/console.h"

static struct console console;

static int open_console(void **state)
{
    struct failure why;
    (void)state;
    memset(&console, 0, sizeof(console));
    return console_open(&console, NULL, &why);
}

static int close_console(void **state)
{
    (void)state;
    console_close(&console);
    return 0;
}

static void feed(const char *text, size_t length)
{
    while (length > 0) {
        size_t piece = length < 4000 ? length : 4000;
        assert_int_equal(write(console.guest_fd, text, piece), piece);
        assert_true(console_read(&console));
        text += piece;
        length -= piece;
    }
}

static char *tail(unsigned lines)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    console_show_tail(&console, lines, out, "> ");
    fclose(out);
    return text;
}

static void shows_the_last_lines(void **state)
{
    (void)state;
    feed("one\r\ntwo\r\nthree\r\nfour\r\n", 23);
    char *text = tail(2);
    assert_string_equal(text, "> three\n> four\n");
    free(text);
    text = tail(100);
    assert_string_equal(text, "> one\n> two\n> three\n> four\n");
    free(text);
}

static void an_empty_ring(void **state)
{
    (void)state;
    char *text = tail(5);
    assert_string_equal(text, "");
    free(text);
}

static void keeps_the_newest(void **state)
{
    static char block[CONSOLE_RING_SIZE * 2];
    (void)state;
    memset(block, 'x', sizeof(block));
    feed(block, sizeof(block));
    feed("\nlast\n", 6);
    char *text = tail(1);
    assert_string_equal(text, "> last\n");
    free(text);
    text = tail(2); /* a line as long as the ring is cut */
    assert_non_null(strstr(text, "> last\n"));
    assert_true(strlen(text) < 4096);
    free(text);
}

static void escapes(void **state)
{
    (void)state;
    feed("\x1b]0;title\x07\x1b[2Jfine\n", 19);
    char *text = tail(1);
    assert_null(strchr(text, '\x1b'));
    assert_null(strchr(text, '\x07'));
    assert_non_null(strstr(text, "fine"));
    free(text);
}

static void end_of_file(void **state)
{
    (void)state;
    close(console.guest_fd);
    console.guest_fd = -1;
    assert_false(console_read(&console));
    assert_int_equal(console.fd, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_console, close_console)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(shows_the_last_lines), TEST(an_empty_ring),
                                       TEST(keeps_the_newest), TEST(escapes), TEST(end_of_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
