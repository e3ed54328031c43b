/* Rules against JSONTestSuite: every n_ is refused as malformed, at a position; a y_ may be
 * refused, but only for what it says; an i_ may be either. The suite is no part of this tree: it is
 * looked for in $CODEV_SUITES, and without it the test is skipped and says so.
 */
#include "test/harness/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/io.h"
#include "host-broker/rules/rules.h"
#include "test/harness/guard.h"

static struct rules rules;

/* The reasons that are no complaint about JSON. */
static bool is_about_meaning(const char *reason)
{
    static const char *const meanings[] = {"expected an object of name to URL", "the URL ",
                                           "a rule's name", "this name is used twice"};
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (strstr(reason, meanings[i]))
            return true;
    return false;
}

static bool has_position(const char *reason)
{
    unsigned line, column;
    int behind = 0;
    return sscanf(reason, "F:%u:%u: %n", &line, &column, &behind) == 2 && line > 0 && column > 0 &&
           behind > 0 && reason[behind] != '\0';
}

static void judge(int folder, const char *name)
{
    static char bytes[RULES_FILE_MAX + 1];
    struct failure why = {""};
    ssize_t length = io_read_file(folder, name, 0, bytes, sizeof(bytes));
    assert_true(length >= 0);
    char *guarded = guard_copy(bytes, (size_t)length);
    int result = rules_parse(&rules, "F", guarded, (size_t)length, &why);
    guard_free(guarded, (size_t)length);
    if (result != 0 && !has_position(why.text))
        fail_msg("%s: no position: %s", name, why.text);
    if (name[0] == 'n' && (result == 0 || is_about_meaning(why.text)))
        fail_msg("%s: taken as JSON: %s", name, why.text);
    if (name[0] == 'y' && result != 0 && !is_about_meaning(why.text))
        fail_msg("%s: taken as malformed: %s", name, why.text);
}

static void every_file_is_judged_right(void **state)
{
    (void)state;
    char path[4096];
    const char *root = getenv("CODEV_SUITES");
    snprintf(path, sizeof(path), "%s/json/test_parsing", root ? root : "CODEV_SUITES");
    DIR *directory = opendir(path);
    if (!directory) {
        print_message("skipped: no JSONTestSuite in %s (CODEV_SUITES names its folder)\n", path);
        skip();
        return;
    }
    size_t counts[3] = {0};
    for (struct dirent *entry; (entry = readdir(directory));) {
        static const char kinds[] = "yni";
        const char *kind = strchr(kinds, entry->d_name[0]);
        if (!kind || entry->d_name[1] != '_')
            continue;
        judge(dirfd(directory), entry->d_name);
        counts[kind - kinds]++;
    }
    closedir(directory);
    print_message("%zu y_, %zu n_, %zu i_: 0 wrong\n", counts[0], counts[1], counts[2]);
    assert_int_equal(counts[0] + counts[1] + counts[2], 318);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_file_is_judged_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
