/* Reading and writing over pipes in small pieces, files at their limits, and waiting.
 */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/io.h"
#include "test/harness/guard.h"

#define BULK (1 << 20)

static char folder[] = "/tmp/codev-unit-io-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder) ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* A child that writes BULK bytes of a pattern into a pipe; its status tells whether all was
 * written. */
static pid_t start_writer(int fd, int close_fd, const char *bytes)
{
    pid_t child = fork();
    if (child == 0) {
        close(close_fd);
        _exit(io_write_full(fd, bytes, BULK) == 0 ? 0 : 1);
    }
    close(fd);
    return child;
}

static void bulk_crosses_a_pipe(int nonblocking)
{
    int ends[2], status;
    char *bytes = malloc(BULK), *back = malloc(BULK + 1);
    for (int i = 0; i < BULK; i++)
        bytes[i] = (char)(i * 7 + (i >> 10));
    assert_int_equal(pipe(ends), 0);
    if (nonblocking)
        assert_int_equal(io_set_nonblocking(ends[1]), 0);
    pid_t writer = start_writer(ends[1], ends[0], bytes);
    assert_int_equal(io_read_full(ends[0], back, BULK + 1), BULK);
    assert_memory_equal(bytes, back, BULK);
    assert_int_equal(io_read_full(ends[0], back, 1), 0);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
    close(ends[0]);
    free(bytes);
    free(back);
}

static void bulk_crosses_pipes_whole(void **state)
{
    (void)state;
    bulk_crosses_a_pipe(0);
    bulk_crosses_a_pipe(1);
}

static void a_broken_pipe_is_an_error(void **state)
{
    (void)state;
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(io_write_full(ends[1], "x", 1), -EPIPE);
    assert_int_equal(io_write_full(ends[1], "x", 0), 0);
    close(ends[1]);
    assert_int_equal(io_write_full(-1, "x", 1), -EBADF);
    assert_int_equal(io_read_full(-1, NULL, 1), -EBADF);
}

static void files_are_read_whole_or_not(void **state)
{
    (void)state;
    const char *path = path_of("file");
    assert_int_equal(io_write_file(AT_FDCWD, path, O_CREAT | O_EXCL, 0600, "12345"), 0);
    char *out = guard_alloc(6);
    assert_int_equal(io_read_file(AT_FDCWD, path, 0, out, 6), 5);
    assert_string_equal(out, "12345");
    guard_free(out, 6);
    char small[5];
    assert_int_equal(io_read_file(AT_FDCWD, path, 0, small, 5), -EFBIG);
    assert_int_equal(io_write_file(AT_FDCWD, path, O_CREAT | O_EXCL, 0600, "x"), -EEXIST);
    assert_int_equal(io_write_file(AT_FDCWD, path, O_TRUNC, 0, ""), 0);
    assert_int_equal(io_read_file(AT_FDCWD, path, 0, small, 1), 0);
    unlink(path);
    assert_int_equal(io_read_file(AT_FDCWD, path, 0, small, 5), -ENOENT);
    assert_int_equal(io_write_file(AT_FDCWD, path, 0, 0, "x"), -ENOENT);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(io_read_file(AT_FDCWD, path, O_NOFOLLOW, small, 5), -ELOOP);
    unlink(path);
}

static void only_regular_files_are_opened(void **state)
{
    (void)state;
    const char *path = path_of("file");
    struct stat status;
    char text[4];
    assert_int_equal(io_open_regular(AT_FDCWD, path, 0, &status), -ENOENT);
    assert_int_equal(io_write_file(AT_FDCWD, path, O_CREAT | O_EXCL, 0600, "12345"), 0);
    int fd = io_open_regular(AT_FDCWD, path, 0, &status);
    assert_true(fd >= 0 && status.st_size == 5);
    assert_int_equal(io_read_full(fd, text, 3), 3);
    assert_int_equal(io_read_whole(fd, text, 3), 2); /* what is left */
    assert_string_equal(text, "45");
    close(fd);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(io_open_regular(AT_FDCWD, path, 0, &status), -EINVAL);
    unlink(path);
    assert_int_equal(io_open_regular(AT_FDCWD, folder, 0, &status), -EINVAL);
    assert_int_equal(io_open_regular(AT_FDCWD, "/dev/null", 0, &status), -EINVAL);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(io_open_regular(AT_FDCWD, path, O_NOFOLLOW, &status), -ELOOP);
    unlink(path);
}

static void timeouts_are_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(io_timeout_ms(NEVER, 5), -1);
    assert_int_equal(io_timeout_ms(5, 5), 0);
    assert_int_equal(io_timeout_ms(4, 5), 0);
    assert_int_equal(io_timeout_ms(6, 5), 1);
    assert_int_equal(io_timeout_ms(5 + 2 * MILLISECONDS, 5), 2);
    assert_int_equal(io_timeout_ms(6 + 2 * MILLISECONDS, 5), 3);
    assert_int_equal(io_timeout_ms(NEVER - 1, 0), INT_MAX);
}

static void do_nothing(int signal_number)
{
    (void)signal_number;
}

/* Signals come every millisecond; the wait ends at its deadline all the same. */
static void waiting_ends_at_the_deadline(void **state)
{
    (void)state;
    const struct sigaction action = {.sa_handler = do_nothing};
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    int64_t deadline = io_monotonic_ns() + 30 * MILLISECONDS;
    assert_false(io_wait(ends[0], POLLIN, deadline));
    assert_true(io_monotonic_ns() >= deadline);
    setitimer(ITIMER_REAL, &never, NULL);
    assert_int_equal(io_write_full(ends[1], "x", 1), 0);
    assert_true(io_wait(ends[0], POLLIN, NEVER));
    assert_false(io_wait(ends[0], POLLIN, deadline)); /* past: false without poll(2) */
    struct pollfd watched[] = {{.fd = ends[0], .events = POLLIN}, {.fd = -1}, {.fd = ends[1]}};
    assert_int_equal(io_poll(watched, 3, NEVER), 1);
    assert_true(watched[0].revents == POLLIN && watched[2].revents == 0);
    close(ends[1]);
    assert_int_equal(io_read_full(ends[0], &(char){0}, 1), 1);
    assert_true(io_wait(ends[0], POLLIN, NEVER)); /* the end of file counts */
    close(ends[0]);
}

static void the_clock_does_not_go_back(void **state)
{
    (void)state;
    int64_t first = io_monotonic_ns(), second = io_monotonic_ns();
    assert_true(first > 0 && second >= first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bulk_crosses_pipes_whole),
        cmocka_unit_test(a_broken_pipe_is_an_error),
        cmocka_unit_test(files_are_read_whole_or_not),
        cmocka_unit_test(only_regular_files_are_opened),
        cmocka_unit_test(timeouts_are_rounded_up),
        cmocka_unit_test(waiting_ends_at_the_deadline),
        cmocka_unit_test(the_clock_does_not_go_back),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
