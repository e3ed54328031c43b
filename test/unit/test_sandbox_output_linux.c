/* Output to a slow reader, a reader that leaves, and none at all; and when credit goes back. */
#include "test/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "qemu-harness/output.h"

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
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0); /* the shared one stays as it was */
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
        for (size_t done = 0; done < piece;) { /* the pattern begins again every OUTPUT_SIZE */
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

static void a_reader_that_left(void **state)
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
    assert_int_equal(output_take_credit(&output), 0); /* nothing was written yet */
    output_flush(&output);
    assert_int_equal(output_take_credit(&output), 5); /* all written: nobody waits for a rest */
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(slow_reader_loses_nothing), TEST(more_than_the_credit),
                                       TEST(a_reader_that_left), TEST(credit_comes_in_steps),
                                       TEST(a_closed_descriptor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
