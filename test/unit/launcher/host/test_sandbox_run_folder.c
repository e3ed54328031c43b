/* The runtime folder: its place and mode, and which folders a later start removes. */
#include "test/harness/unit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "qemu-harness/launcher/host/run_folder.h"

static char base[] = "/tmp/codev-unit-run-XXXXXX";

static int make_base(void **state)
{
    (void)state;
    return mkdtemp(base) && setenv("XDG_RUNTIME_DIR", base, 1) == 0 ? 0 : -1;
}

static int remove_base(void **state)
{
    (void)state;
    return rmdir(base); /* fails when a test left a file */
}

static bool exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* Makes a folder as a killed run leaves it. */
static void abandon(char path[RUN_PATH_MAX], const char *name, mode_t mode)
{
    char file[RUN_PATH_MAX + 16];
    snprintf(path, RUN_PATH_MAX, "%s/%s", base, name);
    assert_int_equal(mkdir(path, mode), 0);
    snprintf(file, sizeof(file), "%s/lock", path);
    touch(file);
}

static void discard(const char *path)
{
    char file[RUN_PATH_MAX + 16];
    snprintf(file, sizeof(file), "%s/lock", path);
    unlink(file);
    assert_int_equal(rmdir(path), 0);
}

static void private_and_removed(void **state)
{
    struct run_folder folder;
    struct failure why;
    struct stat status;
    char path[RUN_PATH_MAX];
    (void)state;
    assert_int_equal(run_folder_make(&folder, &why), 0);
    assert_memory_equal(folder.path, base, strlen(base));
    assert_int_equal(stat(folder.path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    run_folder_name(&folder, path, "x");
    touch(path);
    snprintf(path, sizeof(path), "%s", folder.path);
    run_folder_remove(&folder);
    assert_false(exists(path));
    run_folder_remove(&folder);
}

static void two_at_once(void **state)
{
    struct run_folder one, two;
    struct failure why;
    (void)state;
    assert_int_equal(run_folder_make(&one, &why), 0);
    assert_int_equal(run_folder_make(&two, &why), 0);
    assert_string_not_equal(one.path, two.path);
    assert_true(exists(one.path)); /* a folder whose owner lives is kept */
    run_folder_remove(&two);
    run_folder_remove(&one);
}

static void removes_folders_without_owner(void **state)
{
    struct run_folder folder;
    struct failure why;
    char dead[RUN_PATH_MAX], link[RUN_PATH_MAX + 16], held[RUN_PATH_MAX], open_to_all[RUN_PATH_MAX];
    char lock[RUN_PATH_MAX + 16];
    (void)state;
    abandon(dead, "codev-sandbox-dead00", 0700);
    snprintf(link, sizeof(link), "%s/memory", dead);
    assert_int_equal(symlink("/proc/1/fd/0", link), 0);
    abandon(held, "codev-sandbox-held00", 0700);
    snprintf(lock, sizeof(lock), "%s/lock", held);
    int fd = open(lock, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    abandon(open_to_all, "codev-sandbox-open00", 0755);
    snprintf(link, sizeof(link), "%s/codev-sandbox-link00", base);
    assert_int_equal(symlink("/etc", link), 0);
    assert_int_equal(run_folder_make(&folder, &why), 0);
    assert_false(exists(dead));
    assert_true(exists(held));
    assert_true(exists(open_to_all)); /* its mode is not ours */
    assert_true(exists(link));
    close(fd);
    unlink(link);
    discard(open_to_all);
    run_folder_remove(&folder);
    assert_int_equal(run_folder_make(&folder, &why), 0);
    assert_false(exists(held));
    run_folder_remove(&folder);
}

static void keeps_young_folders(void **state)
{
    struct run_folder folder;
    struct failure why;
    char young[RUN_PATH_MAX], old[RUN_PATH_MAX];
    struct timeval past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    (void)state;
    abandon(young, "codev-sandbox.new-young0", 0700);
    abandon(old, "codev-sandbox.new-old000", 0700);
    assert_int_equal(utimes(old, past), 0);
    assert_int_equal(run_folder_make(&folder, &why), 0);
    assert_true(exists(young));
    assert_false(exists(old));
    discard(young);
    run_folder_remove(&folder);
}

static void falls_back_to_tmp(void **state)
{
    struct run_folder folder;
    struct failure why;
    (void)state;
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    assert_int_equal(run_folder_make(&folder, &why), 0);
    assert_memory_equal(folder.path, "/tmp/codev-sandbox-", 19);
    run_folder_remove(&folder);
    setenv("XDG_RUNTIME_DIR", base, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(private_and_removed),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(removes_folders_without_owner),
        cmocka_unit_test(keeps_young_folders),
        cmocka_unit_test(falls_back_to_tmp),
    };
    return cmocka_run_group_tests(tests, make_base, remove_base);
}
