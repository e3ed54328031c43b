/* The reader against JSONTestSuite's test_parsing: files named y_ must be accepted, n_ refused, and
 * i_ may be either but must not crash. The suite is no part of this tree: it is looked for in
 * $CODEV_SUITES, and without it the test is skipped and says so.
 */
#include "test/harness/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json/json.h"
#include "common/os/io.h"
#include "test/harness/guard.h"

#define FILE_MAX (512 * 1024)
#define TOKENS_MAX 200000
#define ACCEPTED_FILES 95
#define REFUSED_FILES 188

static struct json_token tokens[TOKENS_MAX];
static char bytes[FILE_MAX];

static DIR *open_suite(void)
{
    const char *root = getenv("CODEV_SUITES");
    char path[4096];
    snprintf(path, sizeof(path), "%s/json/test_parsing", root ? root : "CODEV_SUITES");
    DIR *directory = opendir(path);
    if (!directory)
        print_message("skipped: no JSONTestSuite in %s (CODEV_SUITES names its folder)\n", path);
    return directory;
}

static int parse_file(int directory, const char *name)
{
    ssize_t length = io_read_file(directory, name, 0, bytes, sizeof(bytes));
    assert_true(length >= 0);
    char *guarded = guard_copy(bytes, (size_t)length);
    struct json document;
    struct json_position where;
    int result = json_parse(&document, guarded, (size_t)length, tokens, TOKENS_MAX, &where);
    guard_free(guarded, (size_t)length);
    return result;
}

static void every_file_is_judged_right(void **state)
{
    (void)state;
    DIR *directory = open_suite();
    if (!directory)
        skip();
    int accepted = 0, refused = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char kind = entry->d_name[0];
        if (entry->d_name[0] == '.' || entry->d_name[1] != '_')
            continue;
        int result = parse_file(dirfd(directory), entry->d_name);
        if ((kind == 'y' && result != 0) || (kind == 'n' && result == 0))
            fail_msg("%s: %d", entry->d_name, result);
        accepted += kind == 'y';
        refused += kind == 'n';
    }
    closedir(directory);
    assert_int_equal(accepted, ACCEPTED_FILES);
    assert_int_equal(refused, REFUSED_FILES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_file_is_judged_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
