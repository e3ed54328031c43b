/* Output to a slow reader, to one that closes, and to none; and when credit is returned. */
#include "test/harness/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "qemu-harness/launcher/guest/output.h"

static unsigned char data[OUTPUT_SIZE];
static int reader = -1;
static struct output output;

static int start(void **state)
{
    int ends[2];
    struct failure why;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    assert_int_equal(pipe(ends), 0);
    reader = ends[0];
    assert_int_equal(output_open(&output, ends[1], &why), 0);
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0); /* the shared one is unchanged */
    close(ends[1]);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    output_close(&output);
    if (reader >= 0)
        close(reader);
    return 0;
}

static void slow_reader_loses_nothing(void **state)
{
    static unsigned char got[3 * OUTPUT_SIZE];
    size_t sent = 0, received = 0, credit = OUTPUT_SIZE, given = 0;
    (void)state;
    while (received < sizeof(got)) {
        size_t piece = sizeof(got) - sent < 30000 ? sizeof(got) - sent : 30000;
        if (piece > credit)
            piece = credit;
        for (size_t done = 0; done < piece;) { /* the pattern repeats every OUTPUT_SIZE bytes */
            size_t at = (sent + done) % OUTPUT_SIZE;
            size_t part = piece - done < OUTPUT_SIZE - at ? piece - done : OUTPUT_SIZE - at;
            assert_true(output_put(&output, data + at, part));
            done += part;
        }
        sent += piece;
        credit -= piece;
        output_flush(&output);
        size_t back = output_take_credit(&output);
        credit += back;
        given += back;
        ssize_t length = read(reader, got + received, 7001);
        assert_true(length > 0);
        received += (size_t)length;
    }
    for (size_t i = 0; i < sizeof(got); i++)
        assert_int_equal(got[i], data[i % OUTPUT_SIZE]);
    assert_int_equal(given, sent);
}

static void more_than_the_credit(void **state)
{
    (void)state;
    assert_true(output_put(&output, data, OUTPUT_SIZE));
    assert_false(output_put(&output, data, 1));
    assert_int_equal(output.length, OUTPUT_SIZE);
}

static void a_reader_that_closed(void **state)
{
    (void)state;
    close(reader);
    reader = -1;
    assert_true(output_put(&output, data, 1000));
    output_flush(&output);
    assert_int_equal(output.fd, -1);
    assert_int_equal(output.length, 0);
    assert_int_equal(output_take_credit(&output), 1000);
}

static void credit_comes_in_steps(void **state)
{
    (void)state;
    assert_int_equal(output_take_credit(&output), 0);
    assert_true(output_put(&output, data, 5));
    assert_int_equal(output_take_credit(&output), 0); /* nothing was written */
    output_flush(&output);
    assert_int_equal(output_take_credit(&output), 5); /* all was written: no rest to wait for */
    assert_int_equal(output_take_credit(&output), 0);
}

static void a_closed_descriptor(void **state)
{
    struct output none;
    struct failure why;
    (void)state;
    assert_int_equal(output_open(&none, 900, &why), 0);
    assert_true(output_put(&none, data, 10));
    output_flush(&none);
    assert_int_equal(none.length, 0);
    output_close(&none);
}

/* The bytes that are written for these pieces when the reader is a terminal. */
static void expect_shown(const char *const pieces[], const char *shown)
{
    char got[256];
    output.escape = true;
    for (size_t i = 0; pieces[i]; i++) {
        assert_true(output_put(&output, (const unsigned char *)pieces[i], strlen(pieces[i])));
        output_flush(&output);
        assert_false(output_pending(&output));
        assert_int_equal(output_take_credit(&output), strlen(pieces[i]));
    }
    output_finish(&output);
    output_flush(&output);
    assert_false(output_pending(&output));
    ssize_t length = read(reader, got, sizeof(got) - 1);
    assert_true(length >= 0);
    got[length] = '\0';
    assert_string_equal(got, shown);
}

static void escapes_for_a_terminal(void **state)
{
    (void)state;
    expect_shown((const char *const[]){"\033]0;mine\007\tone\n", "\302\233", NULL},
                 "\\x1b]0;mine\\x07\tone\n\\xc2\\x9b");
}

static void characters_in_pieces(void **state)
{
    (void)state;
    expect_shown((const char *const[]){"a\342", "\202", "\254b\360\237", "\230\200\303", NULL},
                 "a\342\202\254b\360\237\230\200\\xc3");
}

static void an_incomplete_character(void **state)
{
    (void)state;
    expect_shown((const char *const[]){"\342", "\342", "x\302", "\033", NULL},
                 "\\xe2\\xe2x\\xc2\\x1b");
}

static void much_text_for_a_terminal(void **state)
{
    static unsigned char got[4 * OUTPUT_SIZE];
    size_t received = 0;
    (void)state;
    memset(data, 7, sizeof(data));
    output.escape = true;
    assert_true(output_put(&output, data, sizeof(data)));
    for (output_flush(&output); received < sizeof(got); output_flush(&output)) {
        ssize_t length = read(reader, got + received, sizeof(got) - received);
        assert_true(length > 0);
        received += (size_t)length;
    }
    assert_false(output_pending(&output));
    for (size_t i = 0; i < sizeof(got); i += 4)
        assert_memory_equal(got + i, "\\x07", 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(slow_reader_loses_nothing), TEST(more_than_the_credit),
        TEST(a_reader_that_closed),      TEST(credit_comes_in_steps),
        TEST(a_closed_descriptor),       TEST(escapes_for_a_terminal),
        TEST(characters_in_pieces),      TEST(an_incomplete_character),
        TEST(much_text_for_a_terminal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
