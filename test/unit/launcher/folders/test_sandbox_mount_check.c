/* Which folders may be mounted: containment in both directions, through symbolic links, and
 * read-only; and that each row of the table of protected paths counts. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qemu-harness/launcher/folders/mount_check.h"

static char base[] = "/tmp/codev-unit-mount-XXXXXX";

static char *in_base(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", base, name);
    return path;
}

static void make_file(const char *name)
{
    int fd = open(in_base(name), O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0);
    close(fd);
}

static int make_tree(void **state)
{
    (void)state;
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
    unsetenv("NODE_EXTRA_CA_CERTS");
    assert_non_null(mkdtemp(base));
    assert_int_equal(mkdir(in_base("data"), 0755), 0);
    assert_int_equal(mkdir(in_base("data/sub"), 0755), 0);
    assert_int_equal(mkdir(in_base("work"), 0755), 0);
    assert_int_equal(mkdir(in_base("data2"), 0755), 0);
    make_file("data/rules");
    assert_int_equal(symlink(in_base("data"), in_base("link")), 0);
    assert_int_equal(symlink(in_base("data/rules"), in_base("work/rules-link")), 0);
    return 0;
}

static int remove_tree(void **state)
{
    (void)state;
    unlink(in_base("work/rules-link"));
    unlink(in_base("link"));
    unlink(in_base("data/rules"));
    rmdir(in_base("data/sub"));
    rmdir(in_base("data"));
    rmdir(in_base("data2"));
    rmdir(in_base("work"));
    return rmdir(base);
}

static int judge_all(const char *mount, const struct options *options,
                     const struct found_paths *found, struct failure *why)
{
    struct option_list list = {.items = {mount}, .count = 1};
    struct mount_table table;
    int result = mount_table_open(&table, &list, why);
    if (!result)
        result = mount_check(&table, options, found, why);
    mount_table_close(&table);
    return result;
}

/* Opens one mount and checks it against one path: that of an option that a read-only mount may
 * contain, or of one that it may not. */
static int judge(const char *mount, const char *path, bool readonly_allowed, struct failure *why)
{
    struct options options = {.config = readonly_allowed ? path : NULL,
                              .rules = readonly_allowed ? NULL : path};
    struct found_paths found = {.run_folder = NULL};
    return judge_all(mount, &options, &found, why);
}

/* Opens one mount and checks it against one row, whose path is `path`. */
static int judge_row(const char *mount, const struct protected_row *row, const char *path,
                     struct failure *why)
{
    struct options options = {.port = -1};
    struct found_paths found = {.run_folder = NULL};
    void *option = (char *)&options + row->offset;
    struct option_list *list = option;
    switch (row->source) {
    case PROTECTED_OPTION:
        *(const char **)option = path;
        break;
    case PROTECTED_OPTION_LIST: /* not the first of the list */
        list->items[0] = "/nowhere";
        list->items[1] = path;
        list->count = 2;
        break;
    case PROTECTED_FOUND:
        *(const char **)(void *)((char *)&found + row->offset) = path;
        break;
    case PROTECTED_VARIABLE:
        assert_int_equal(setenv(row->variable, path, 1), 0);
        break;
    }
    int result = judge_all(mount, &options, &found, why);
    if (row->source == PROTECTED_VARIABLE)
        unsetenv(row->variable);
    return result;
}

static void each_row_counts(void **state)
{
    char readonly[300];
    (void)state;
    snprintf(readonly, sizeof(readonly), "%s:ro", in_base("data"));
    assert_true(protected_row_count > 0);
    for (unsigned i = 0; i < protected_row_count; i++) {
        const struct protected_row *row = &protected_rows[i];
        struct failure why = {""};
        assert_int_equal(judge_row(in_base("data"), row, in_base("data/rules"), &why), -EPERM);
        if (!row->file &&
            !strstr(why.text, row->what)) /* the row of the folder itself answers first */
            fail_msg("%s: not in: %s", row->what, why.text);
        assert_int_equal(judge_row(readonly, row, in_base("data/rules"), &why),
                         row->readonly_allowed ? 0 : -EPERM);
        assert_int_equal(judge_row(in_base("work"), row, in_base("data/rules"), &why), 0);
    }
}

static void the_rules_of_an_app_by_a_link(void **state)
{
    struct options options = {.app_data = in_base("data2")};
    struct found_paths found = {.run_folder = NULL};
    struct failure why;
    (void)state;
    assert_int_equal(symlink(in_base("data/rules"), in_base("data2/sandbox-egress.json")), 0);
    assert_int_equal(judge_all(in_base("data"), &options, &found, &why), -EPERM);
    assert_non_null(strstr(why.text, "it contains the rules file "));
    unlink(in_base("data2/sandbox-egress.json"));
    assert_int_equal(judge_all(in_base("data"), &options, &found, &why), 0);
}

static void a_dash_is_no_log_file(void **state)
{
    struct options options = {.broker_log = "-"};
    struct found_paths found = {.run_folder = NULL};
    struct failure why;
    (void)state;
    assert_int_equal(judge_all(".:/workspace/here", &options, &found, &why), 0);
    options = (struct options){.rules = "-"};
    assert_int_equal(judge_all(".:/workspace/here", &options, &found, &why), -EPERM);
}

static void contains_is_refused(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("data"), in_base("data/rules"), false, &why), -EPERM);
    assert_non_null(strstr(why.text, "data refused: it contains the rules file"));
    assert_non_null(strstr(why.text, "data/rules"));
    assert_int_equal(judge(base, in_base("data/rules"), false, &why), -EPERM);
    assert_int_equal(judge("/", in_base("data/rules"), false, &why), -EINVAL);
    assert_int_equal(judge("/:/mnt/x", in_base("data/rules"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("data"), in_base("data"), false, &why), -EPERM);
}

static void an_empty_path(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(".:/workspace/here", "", false, &why), 0);
}

static void inside_is_refused(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("data/sub"), in_base("data"), false, &why), -EPERM);
    assert_non_null(strstr(why.text, "it lies in the rules file"));
}

static void neighbours_are_allowed(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("data2"), in_base("data"), false, &why), 0);
    assert_int_equal(judge(in_base("data/sub"), in_base("data/rules"), false, &why), 0);
    assert_int_equal(judge(in_base("data2"), NULL, false, &why), 0);
}

static void links_make_no_difference(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("link"), in_base("data/rules"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("data"), in_base("link/rules"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("link/sub"), in_base("data"), false, &why), -EPERM);
    /* the folder of the link and the folder of its target both decide what is read */
    assert_int_equal(judge(in_base("work"), in_base("work/rules-link"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("data"), in_base("work/rules-link"), false, &why), -EPERM);
}

static void paths_that_do_not_exist(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("data"), in_base("data/none"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("data"), in_base("data/none/deeper"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("work"), in_base("data/none"), false, &why), 0);
}

static void readonly_mounts(void **state)
{
    char spec[300];
    struct failure why;
    (void)state;
    snprintf(spec, sizeof(spec), "%s:ro", in_base("data"));
    assert_int_equal(judge(spec, in_base("data/rules"), true, &why), 0);
    assert_int_equal(judge(spec, in_base("data/rules"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("data"), in_base("data/rules"), true, &why), -EPERM);
}

static void missing_folder_and_file(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("none"), NULL, false, &why), -ENOENT);
    assert_non_null(strstr(why.text, "none"));
    assert_int_equal(judge(in_base("data/rules"), NULL, false, &why), -ENOTDIR);
}

static void writable_by(void **state)
{
    struct mount mount = {.uid = 5, .gid = 6, .mode = 0750};
    (void)state;
    assert_true(mount_writable_by(&mount, 5, 9));
    assert_false(mount_writable_by(&mount, 7, 6));
    mount.mode = 0577; /* only the owner's bits count for the owner */
    assert_false(mount_writable_by(&mount, 5, 6));
    assert_true(mount_writable_by(&mount, 7, 6));
    assert_true(mount_writable_by(&mount, 7, 7));
}

/* Opens two mounts and checks them against each other. */
static int judge_beside(const char *first, const char *second, struct failure *why)
{
    struct option_list list = {.items = {first, second}, .count = 2};
    struct options options = {.port = -1};
    struct found_paths found = {.run_folder = NULL};
    struct mount_table table;
    int result = mount_table_open(&table, &list, why);
    if (!result)
        result = mount_check(&table, &options, &found, why);
    mount_table_close(&table);
    return result;
}

static void links_out_of_a_writable_mount(void **state)
{
    struct failure why;
    char readonly[300];
    (void)state;
    assert_int_equal(symlink(in_base("data"), in_base("work/planted")), 0);
    assert_int_equal(symlink(in_base("work"), in_base("own")), 0);
    assert_int_equal(mkdir(in_base("work/deep"), 0755), 0);
    assert_int_equal(judge_beside(in_base("work"), in_base("work/planted"), &why), -EPERM);
    assert_non_null(strstr(why.text, "work/planted refused: it is "));
    assert_non_null(strstr(why.text, "data by a symbolic link in "));
    assert_int_equal(judge_beside(in_base("work/planted/sub"), in_base("work"), &why), -EPERM);
    assert_int_equal(judge_beside(in_base("own"), in_base("own/planted"), &why), -EPERM);
    /* relative paths, from within the mount */
    int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(in_base("work")), 0);
    assert_int_equal(judge_beside(".:/workspace/w", "planted", &why), -EPERM);
    assert_int_equal(judge_beside(".:/workspace/w", "./deep/../planted", &why), -EPERM);
    assert_int_equal(judge_beside(".:/workspace/w", "../data", &why), 0);
    assert_int_equal(judge_beside(".:/workspace/w", "deep/../../data", &why), 0);
    assert_int_equal(judge_beside(".:/workspace/w", "deep", &why), 0);
    assert_int_equal(fchdir(before), 0);
    close(before);
    /* links that no sandbox can have made */
    snprintf(readonly, sizeof(readonly), "%s:/workspace/w:ro", in_base("work"));
    assert_int_equal(judge_beside(readonly, in_base("work/planted"), &why), 0);
    assert_int_equal(judge_beside(in_base("work"), in_base("link"), &why), 0);
    rmdir(in_base("work/deep"));
    unlink(in_base("own"));
    unlink(in_base("work/planted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_counts),
        cmocka_unit_test(the_rules_of_an_app_by_a_link),
        cmocka_unit_test(a_dash_is_no_log_file),
        cmocka_unit_test(an_empty_path),
        cmocka_unit_test(links_out_of_a_writable_mount),
        cmocka_unit_test(contains_is_refused),
        cmocka_unit_test(inside_is_refused),
        cmocka_unit_test(neighbours_are_allowed),
        cmocka_unit_test(links_make_no_difference),
        cmocka_unit_test(paths_that_do_not_exist),
        cmocka_unit_test(readonly_mounts),
        cmocka_unit_test(missing_folder_and_file),
        cmocka_unit_test(writable_by),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
