/* Unit tests of init/folders/gitconfig.c: git itself reads the lines back. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/io.h"
#include "init/folders/gitconfig.h"

static const char *const paths[] = {
    "/workspace/app",
    "/workspace/with space",
    "/workspace/ leading and trailing ",
    "/workspace/\"quoted\"",
    "/workspace/back\\slash\\",
    "/workspace/semi;colon#hash",
    "/workspace/new\nline",
    "/workspace/tab\tand\bbackspace",
    "/workspace/carriage\rreturn\r\nboth",
    "/workspace/b\xc3\xbc"
    "cher",
    "/workspace/latin-\xe9",
    "/workspace/a,b=c:d'e",
    "/workspace/[section]\n[core]\n\tpager = evil",
    "/workspace/\x01\x1b[31m",
};
#define PATHS (sizeof(paths) / sizeof(paths[0]))

static void read_back(void **state)
{
    char file[] = "/tmp/codev-test-gitconfig-XXXXXX", line[512], command[256], found[4096];
    int fd = mkstemp(file);
    size_t length, offset = 0;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(io_write_full(fd, "[safe]\n", 7), 0);
    for (size_t i = 0; i < PATHS; i++) {
        int made = gitconfig_directory_line(line, sizeof(line), paths[i], i % 2 ? "/*" : "");
        assert_true(made > 0 && made == (int)strlen(line));
        assert_int_equal(io_write_full(fd, line, (size_t)made), 0);
    }
    close(fd);
    snprintf(command, sizeof(command), "git config --file %s --null --get-all safe.directory",
             file);
    FILE *git = popen(command, "r");
    length = fread(found, 1, sizeof(found), git);
    assert_int_equal(pclose(git), 0);
    unlink(file);
    for (size_t i = 0; i < PATHS; i++) {
        char wanted[512];
        snprintf(wanted, sizeof(wanted), "%s%s", paths[i], i % 2 ? "/*" : "");
        assert_true(offset < length);
        assert_string_equal(found + offset, wanted);
        offset += strlen(wanted) + 1;
    }
    assert_int_equal(offset, length); /* and nothing else */
}

static void no_room(void **state)
{
    char line[64];

    (void)state;
    int length = gitconfig_directory_line(line, sizeof(line), "/a\"", "");
    assert_int_equal(gitconfig_directory_line(line, (size_t)length + 1, "/a\"", ""), length);
    assert_int_equal(gitconfig_directory_line(line, (size_t)length, "/a\"", ""), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_back),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
