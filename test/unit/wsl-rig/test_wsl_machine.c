/* The WSL machine of codev-sandbox-wsl: its options, and the names of mounted folders on Windows,
 * on a drive of its own rig or of a rig that runs. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qemu-harness/wsl-rig/launcher/wsl_machine.h"

#define FACTS                                                                                      \
    "{\"network\":\"nat\",\"drives\":[[\"C\",\"/users\",false],[\"P\",\"/users/programs\",true],"  \
    "[\"R\",\"/\",true]]}"

static char folder[] = "/tmp/codev-test-XXXXXX";

static int name_one(const char *real, bool readonly, char out[PATH_MAX], struct failure *why)
{
    struct mount mount = {.fd = -1};
    struct mount_table table = {.entries = &mount, .count = 1};
    snprintf(mount.real, sizeof(mount.real), "%s", real);
    mount.spec.readonly = readonly;
    int result = wsl_name_mounts(&table, folder, why);
    snprintf(out, PATH_MAX, "%s", result == 0 ? mount.source : "");
    return result;
}

static void write_facts(const char *text)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/rig.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const struct {
    const char *real;
    bool readonly;
    const char *name; /* NULL: refused */
} cases[] = {
    {"/users", false, "C:\\"},
    {"/users/x/app", false, "C:\\x\\app"},
    {"/users/a b,c", false, "C:\\a b,c"},
    {"/users/programs", true, "P:\\"},
    {"/users/programs/x", true, "P:\\x"},
    {"/users/programs/x", false, "C:\\programs\\x"}, /* the writable drive has it too */
    {"/usersx", false, NULL},                        /* no prefix of a name counts */
    {"/etc", true, "R:\\etc"},
    {"/etc", false, NULL}, /* on no drive that is writable */
    {"/users/a\\b", false, NULL},
};

static void on_a_rig_that_runs(void **state)
{
    char name[PATH_MAX];
    struct failure why;
    (void)state;
    write_facts(FACTS);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int result = name_one(cases[i].real, cases[i].readonly, name, &why);
        if (!cases[i].name)
            assert_true(result < 0);
        else
            assert_string_equal(name, cases[i].name);
    }
}

static void a_rig_that_says_nonsense(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "{}", "{\"drives\":[[\"C\"]]}", "{\"drives\":[[1,2,3]]}", "{\"drives\":[]}"};
    char name[PATH_MAX];
    struct failure why;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        write_facts(texts[i]);
        assert_true(name_one("/users/x", false, name, &why) < 0);
    }
}

static void drives_of_our_own(void **state)
{
    static struct mount mounts[24];
    struct mount_table table = {.entries = mounts, .count = 23};
    struct failure why;
    (void)state;
    assert_int_equal(wsl_name_mounts(&table, NULL, &why), 0);
    assert_string_equal(mounts[0].source, "D:\\");
    assert_string_equal(mounts[0].type, "drvfs");
    assert_string_equal(mounts[22].source, "Z:\\");
    table.count = 24;
    assert_int_equal(wsl_name_mounts(&table, NULL, &why), -E2BIG);
}

static int take(struct failure *why, char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    int result = wsl_options_take(&argc, argv, why);
    assert_null(argv[argc]);
    return result ? result : argc;
}

#define TAKE(why, ...) take(why, (char *[]){__VA_ARGS__, NULL})

static void options(void **state)
{
    struct failure why;
    char *argv[] = {"x",
                    "run",
                    "--wsl-network=mirrored",
                    "--mount",
                    "/a",
                    "--env",
                    "A=b",
                    "--wsl-distribution",
                    "d",
                    "--",
                    "sh",
                    "-c",
                    "--wsl-rig",
                    "--timeline",
                    NULL};
    (void)state;
    assert_int_equal(take(&why, argv), 11);
    assert_string_equal(argv[2], "--mount");
    assert_string_equal(argv[5], "A=b");
    assert_string_equal(argv[6], "--");
    assert_string_equal(argv[9], "--wsl-rig");
    assert_int_equal(TAKE(&why, "x", "run", "--wsl-network", "bridged"), -EINVAL);
    assert_non_null(strstr(why.text, "not nat or mirrored"));
    assert_int_equal(TAKE(&why, "x", "run", "--wsl-rig=/r", "--wsl-network=nat"), -EINVAL);
    assert_non_null(strstr(why.text, "is chosen when the rig"));
    assert_int_equal(TAKE(&why, "x", "run", "--wsl-rig"), -EINVAL);
    assert_non_null(strstr(why.text, "needs a value"));
}

static void options_of_another_machine(void **state)
{
    struct options wrong[] = {
        {.file_server = FILE_SERVER_9P}, {.kernel = "k"}, {.arch = "aarch64"}};
    struct machine_parts parts = {.options = NULL};
    struct found_paths found;
    struct failure why;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        parts.options = &wrong[i];
        assert_int_equal(wsl_machine.open(&parts, &found, &why), -EINVAL);
        assert_non_null(strstr(why.text, i < 2 ? "do not apply to WSL" : "x86_64 only"));
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof(path), "%s/rig.json", folder);
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_a_rig_that_runs),         cmocka_unit_test(a_rig_that_says_nonsense),
        cmocka_unit_test(drives_of_our_own),          cmocka_unit_test(options),
        cmocka_unit_test(options_of_another_machine),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
