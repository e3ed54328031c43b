/* Which folders may be mounted: containment in both directions, through symbolic links, and read-only. */
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

/* Opens one mount and judges it against one path. */
static int judge(const char *mount, const char *path, bool writable_only, struct failure *why)
{
    struct option_list list = {.items = {mount}, .count = 1};
    struct protected_path one = {"the thing", path, writable_only};
    struct mount_table table;
    int result = mount_table_open(&table, &list, why);
    if (!result)
        result = mount_check(&table, &one, 1, why);
    mount_table_close(&table);
    return result;
}

static void contains_is_refused(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("data"), in_base("data/rules"), false, &why), -EPERM);
    assert_non_null(strstr(why.text, "data refused: it contains the thing"));
    assert_non_null(strstr(why.text, "data/rules"));
    assert_int_equal(judge(base, in_base("data/rules"), false, &why), -EPERM);
    assert_int_equal(judge("/", in_base("data/rules"), false, &why), -EINVAL);
    assert_int_equal(judge("/:/mnt/x", in_base("data/rules"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("data"), in_base("data"), false, &why), -EPERM);
}

static void an_empty_path_is_none(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(".:/workspace/here", "", false, &why), 0);
}

static void lying_in_is_refused(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("data/sub"), in_base("data"), false, &why), -EPERM);
    assert_non_null(strstr(why.text, "it lies in the thing"));
}

static void neighbours_are_allowed(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("data2"), in_base("data"), false, &why), 0);
    assert_int_equal(judge(in_base("data/sub"), in_base("data/rules"), false, &why), 0);
    assert_int_equal(judge(in_base("data2"), NULL, false, &why), 0);
}

static void links_do_not_help(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("link"), in_base("data/rules"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("data"), in_base("link/rules"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("link/sub"), in_base("data"), false, &why), -EPERM);
    /* the link's own folder decides as well what is read, and so does its target's */
    assert_int_equal(judge(in_base("work"), in_base("work/rules-link"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("data"), in_base("work/rules-link"), false, &why), -EPERM);
}

static void what_does_not_exist_yet(void **state)
{
    struct failure why;
    (void)state;
    assert_int_equal(judge(in_base("data"), in_base("data/none"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("data"), in_base("data/none/deeper"), false, &why), -EPERM);
    assert_int_equal(judge(in_base("work"), in_base("data/none"), false, &why), 0);
}

static void readonly_where_that_is_enough(void **state)
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

static void who_may_write(void **state)
{
    struct mount mount = {.uid = 5, .gid = 6, .mode = 0750};
    (void)state;
    assert_true(mount_writable_by(&mount, 5, 9));
    assert_false(mount_writable_by(&mount, 7, 6));
    mount.mode = 0577; /* the owner's own bits count for the owner, whatever others may */
    assert_false(mount_writable_by(&mount, 5, 6));
    assert_true(mount_writable_by(&mount, 7, 6));
    assert_true(mount_writable_by(&mount, 7, 7));
}

/* Judges the second mount beside the first. */
static int judge_beside(const char *first, const char *second, struct failure *why)
{
    struct option_list list = {.items = {first, second}, .count = 2};
    struct mount_table table;
    int result = mount_table_open(&table, &list, why);
    if (!result)
        result = mount_check(&table, NULL, 0, why);
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
    /* relative, from within */
    int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(in_base("work")), 0);
    assert_int_equal(judge_beside(".:/workspace/w", "planted", &why), -EPERM);
    assert_int_equal(judge_beside(".:/workspace/w", "./deep/../planted", &why), -EPERM);
    assert_int_equal(judge_beside(".:/workspace/w", "../data", &why), 0);
    assert_int_equal(judge_beside(".:/workspace/w", "deep/../../data", &why), 0);
    assert_int_equal(judge_beside(".:/workspace/w", "deep", &why), 0);
    assert_int_equal(fchdir(before), 0);
    close(before);
    /* a link that no sandbox can have made */
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
        cmocka_unit_test(an_empty_path_is_none),   cmocka_unit_test(links_out_of_a_writable_mount),
        cmocka_unit_test(contains_is_refused),     cmocka_unit_test(lying_in_is_refused),
        cmocka_unit_test(neighbours_are_allowed),  cmocka_unit_test(links_do_not_help),
        cmocka_unit_test(what_does_not_exist_yet), cmocka_unit_test(readonly_where_that_is_enough),
        cmocka_unit_test(missing_folder_and_file), cmocka_unit_test(who_may_write),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
