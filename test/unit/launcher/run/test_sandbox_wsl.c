/* What a mounted folder is called on Windows: a drive of our own rig, or a place on one of a rig that runs. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qemu-harness/launcher/run/wsl.h"

#define FACTS                                                                                      \
    "{\"network\":\"nat\",\"drives\":[[\"C\",\"/users\",false],[\"P\",\"/users/programs\",true],"  \
    "[\"R\",\"/\",true]]}"

static char folder[] = "/tmp/codev-test-XXXXXX";

static int name_one(const char *real, bool readonly, bool own, char out[PATH_MAX],
                    struct failure *why)
{
    struct mount mount = {.fd = -1};
    struct mount_table table = {.entries = &mount, .count = 1};
    struct wsl wsl = {.own = own};
    snprintf(mount.real, sizeof(mount.real), "%s", real);
    mount.spec.readonly = readonly;
    snprintf(wsl.folder, sizeof(wsl.folder), "%s", folder);
    int result = wsl_name_mounts(&wsl, &table, why);
    snprintf(out, PATH_MAX, "%s", result == 0 ? wsl.sources[0] : "");
    wsl_close(&wsl);
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
        int result = name_one(cases[i].real, cases[i].readonly, false, name, &why);
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
        assert_true(name_one("/users/x", false, false, name, &why) < 0);
    }
}

static void drives_of_our_own(void **state)
{
    static struct mount mounts[24];
    struct mount_table table = {.entries = mounts, .count = 23};
    struct wsl wsl = {.own = true};
    struct failure why;
    (void)state;
    assert_int_equal(wsl_name_mounts(&wsl, &table, &why), 0);
    assert_string_equal(wsl.sources[0], "D:\\");
    assert_string_equal(wsl.sources[22], "Z:\\");
    wsl_close(&wsl);
    table.count = 24;
    assert_int_equal(wsl_name_mounts(&wsl, &table, &why), -E2BIG);
    wsl_close(&wsl);
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
        cmocka_unit_test(on_a_rig_that_runs),
        cmocka_unit_test(a_rig_that_says_nonsense),
        cmocka_unit_test(drives_of_our_own),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
