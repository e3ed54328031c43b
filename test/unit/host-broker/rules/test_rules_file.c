/* Rules as a file: owner, mode, kind and size, each on a real file. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/io.h"
#include "host-broker/rules/rules.h"

#define CONTENT "{\"npm\":\"https://npm.example\"}"

static struct rules rules;
static char folder[] = "/tmp/codev-rules-XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/rules", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void make_file(const char *content, mode_t mode)
{
    unlink(path);
    assert_int_equal(io_write_file(AT_FDCWD, path, O_CREAT | O_WRONLY, 0600, content), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void assert_load(int expected, const char *reason)
{
    struct failure why = {""};
    int result = rules_load(&rules, path, &why);
    if (result != expected || (reason && !strstr(why.text, reason)))
        fail_msg("%d: %s", result, why.text);
    assert_int_equal(rules.count, expected == 0);
    assert_true(expected == 0 || strstr(why.text, path));
}

static void a_file_is_loaded(void **state)
{
    (void)state;
    make_file(CONTENT, 0644);
    assert_load(0, NULL);
    chmod(path, 0400);
    assert_load(0, NULL);
}

static void an_absent_file_is_told_apart(void **state)
{
    (void)state;
    unlink(path);
    assert_load(-ENOENT, "No such file");
}

static void others_may_not_write(void **state)
{
    (void)state;
    make_file(CONTENT, 0646);
    assert_load(-EPERM, "writable by everyone (mode 0646)");
    make_file(CONTENT, 0602);
    assert_load(-EPERM, "writable by everyone");
}

static void a_group_may_write_only_when_private(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* giving files to groups needs root */
    make_file(CONTENT, 0664);
    assert_load(0, NULL); /* root's own group, with no member */
    assert_int_equal(chown(path, 0, 65534), 0);
    assert_load(-EPERM, "writable by group 65534");
    assert_int_equal(chown(path, 0, 4242), 0); /* a group that nobody knows */
    assert_load(-EPERM, "writable by group 4242");
    chmod(path, 0644);
    assert_load(0, NULL);
}

static void a_strangers_file_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* giving files away needs root */
    make_file(CONTENT, 0600);
    assert_int_equal(chown(path, 4242, 0), 0);
    assert_load(-EPERM, "owned by uid 4242");
}

static void only_a_regular_file_will_do(void **state)
{
    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* opening it must not hang */
    assert_load(-EINVAL, "not a regular file");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_load(-EINVAL, "not a regular file");
    assert_int_equal(rmdir(path), 0);
}

static void size_is_limited(void **state)
{
    (void)state;
    make_file("{}", 0600);
    assert_int_equal(truncate(path, RULES_FILE_MAX + 1), 0);
    assert_load(-EFBIG, "larger than");
}

static void malformed_content_has_a_position(void **state)
{
    (void)state;
    char expected[96];
    make_file("{\n\"npm\" \"x\"}", 0600);
    snprintf(expected, sizeof(expected), "%s:2:7: ", path);
    assert_load(-EINVAL, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_loaded),
        cmocka_unit_test(an_absent_file_is_told_apart),
        cmocka_unit_test(others_may_not_write),
        cmocka_unit_test(a_group_may_write_only_when_private),
        cmocka_unit_test(a_strangers_file_is_refused),
        cmocka_unit_test(only_a_regular_file_will_do),
        cmocka_unit_test(size_is_limited),
        cmocka_unit_test(malformed_content_has_a_position),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
