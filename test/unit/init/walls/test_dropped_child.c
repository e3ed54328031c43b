/* Unit tests of init/walls/dropped_child.c. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/io.h"
#include "init/walls/dropped_child.h"

#define SECOND_NS 1000000000LL

static const struct account account = {
    .name = "t", .home = "/", .shell = "/bin/sh", .uid = 4321, .gid = 4322};
static struct boot_config config;

struct record {
    uid_t uid;
    int failed, silent, token_bytes, secret_bytes, argument;
};

static int fill(void **state)
{
    (void)state;
    config.limit_nofile = 256;
    memset(config.relay.token, 'a', SECRET_HEX_LENGTH);
    memset(config.way_in.secret, 'b', SECRET_HEX_LENGTH);
    return 0;
}

static void report(int out, const struct failure *why, void *argument)
{
    struct record record = {
        .uid = getuid(), .failed = why ? 1 : 0, .argument = *(int *)argument, .silent = 1};
    struct stat null, own;

    stat("/dev/null", &null);
    for (int fd = 0; fd < 3; fd++)
        record.silent &= fstat(fd, &own) == 0 && own.st_rdev == null.st_rdev;
    for (int i = 0; i < SECRET_HEX_LENGTH; i++) {
        record.token_bytes += config.relay.token[i] == 'a';
        record.secret_bytes += config.way_in.secret[i] == 'b';
    }
    (void)io_write_full(out, &record, sizeof(record));
}

static void one_record(void **state)
{
    struct dropped_child child;
    struct record record;
    int argument = 42;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(dropped_child_start(&child, &config, &account, -1, report, &argument, NULL),
                     0);
    assert_true(
        dropped_child_receive(&child, &record, sizeof(record), io_monotonic_ns() + 20 * SECOND_NS));
    assert_int_equal(record.uid, 4321);
    assert_int_equal(record.failed, 0);
    assert_int_equal(record.silent, 1);
    assert_int_equal(record.argument, 42);
    assert_int_equal(record.token_bytes + record.secret_bytes, 0);
    assert_int_equal(config.relay.token[0], 'a'); /* ours is still there */
    assert_false(
        dropped_child_receive(&child, &record, sizeof(record), io_monotonic_ns() + 20 * SECOND_NS));
    dropped_child_end(&child);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_drop_that_fails(void **state)
{
    static const struct account root = {.name = "root", .home = "/"};
    struct dropped_child child;
    struct record record;
    int argument = 0;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(dropped_child_start(&child, &config, &root, -1, report, &argument, NULL), 0);
    assert_true(
        dropped_child_receive(&child, &record, sizeof(record), io_monotonic_ns() + 20 * SECOND_NS));
    assert_int_equal(record.failed, 1);
    dropped_child_end(&child);
}

/* Half a record and then nothing. */
static void dawdle(int out, const struct failure *why, void *argument)
{
    (void)why;
    (void)argument;
    (void)io_write_full(out, "half", 4);
    pause();
}

static void a_child_that_hangs(void **state)
{
    struct dropped_child child;
    struct record record;

    (void)state;
    assert_int_equal(dropped_child_start(&child, &config, &account, -1, dawdle, NULL, NULL), 0);
    assert_false(
        dropped_child_receive(&child, &record, sizeof(record), io_monotonic_ns() + SECOND_NS / 5));
    dropped_child_end(&child);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void crash(int out, const struct failure *why, void *argument)
{
    (void)out;
    (void)why;
    (void)argument;
    signal(SIGKILL, SIG_DFL);
    kill(getpid(), SIGKILL);
}

static void a_child_that_dies(void **state)
{
    struct dropped_child child;
    struct record record;

    (void)state;
    assert_int_equal(dropped_child_start(&child, &config, &account, -1, crash, NULL, NULL), 0);
    assert_false(
        dropped_child_receive(&child, &record, sizeof(record), io_monotonic_ns() + 20 * SECOND_NS));
    dropped_child_end(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_record, fill),
        cmocka_unit_test_setup(a_drop_that_fails, fill),
        cmocka_unit_test_setup(a_child_that_hangs, fill),
        cmocka_unit_test_setup(a_child_that_dies, fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
