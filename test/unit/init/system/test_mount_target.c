/* Unit tests of init/system/mount_target.c in a directory of their own. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/system/mount_target.h"

static char root_path[] = "/tmp/codev-test-target-XXXXXX";
static int root = -1;

static int make_root(void **state)
{
    (void)state;
    strcpy(root_path + strlen(root_path) - 6, "XXXXXX");
    if (!mkdtemp(root_path))
        return -1;
    root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0;
}

static int remove_root(void **state)
{
    char command[128];

    (void)state;
    close(root);
    snprintf(command, sizeof(command), "rm -rf '%s'", root_path);
    return system(command);
}

static int make(const char *path, struct failure *why)
{
    int fd = mount_target_open(root, path, 0755, NULL, why);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

static void makes_what_is_missing(void **state)
{
    struct failure why;
    struct stat status;

    (void)state;
    assert_int_equal(make("/workspace/a b,\"c\"\n\xff/deep", &why), 0);
    assert_int_equal(fstatat(root, "workspace/a b,\"c\"\n\xff/deep", &status, AT_SYMLINK_NOFOLLOW),
                     0);
    assert_true(S_ISDIR(status.st_mode));
    assert_int_equal(make("/workspace/a b,\"c\"\n\xff/deep", &why), 0);
    assert_int_equal(make("/a/../b", &why), -EINVAL);
    assert_int_equal(faccessat(root, "a", F_OK, 0), -1);
}

static void links_are_not_followed(void **state)
{
    static const char *const texts[] = {"/etc", "../..", ".", "target", "/proc/self/root"};
    struct failure why;

    (void)state;
    mkdirat(root, "target", 0755);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(symlinkat(texts[i], root, "link"), 0);
        assert_int_equal(make("/link", &why), -ELOOP);
        assert_string_equal(why.text, "/link is a symbolic link, which is not followed");
        assert_int_equal(make("/link/below", &why), -ELOOP);
        assert_string_equal(why.text, "/link is a symbolic link, which is not followed");
        assert_int_equal(unlinkat(root, "link", 0), 0);
    }
    assert_int_equal(faccessat(root, "target/below", F_OK, 0), -1);
    assert_int_equal(access("/etc/below", F_OK), -1);
    assert_int_equal(symlinkat("nowhere", root, "dangling"), 0);
    assert_int_equal(make("/dangling", &why), -ELOOP);
    assert_int_equal(faccessat(root, "nowhere", F_OK, 0), -1);
}

static void a_file_in_the_way(void **state)
{
    struct failure why;

    (void)state;
    close(openat(root, "f\nile", O_CREAT | O_WRONLY, 0644));
    assert_int_equal(make("/f\nile", &why), -ENOTDIR);
    assert_string_equal(why.text, "/f\\x0aile: Not a directory");
    assert_int_equal(make("/f\nile/below", &why), -ENOTDIR);
}

static uid_t owner(const char *path)
{
    struct stat status;

    assert_int_equal(fstatat(root, path, &status, 0), 0);
    return status.st_uid;
}

/* Only below /workspace and the home directory; what was there before keeps its owner. */
static void owners(void **state)
{
    static const struct mount_owner account = {.home = "/home/codev", .uid = 1234, .gid = 1234};
    static const char *const targets[] = {"/workspace/a/b", "/home/codev/x/y", "/mnt/z",
                                          "/workspace/old/n"};

    (void)state;
    if (geteuid() != 0)
        skip();
    mkdirat(root, "workspace", 0755);
    mkdirat(root, "workspace/old", 0755);
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        int fd = mount_target_open(root, targets[i], 0755, &account, NULL);
        assert_true(fd >= 0);
        close(fd);
    }
    assert_int_equal(owner("workspace"), 0);
    assert_int_equal(owner("workspace/a"), 1234);
    assert_int_equal(owner("workspace/a/b"), 1234);
    assert_int_equal(owner("workspace/old"), 0);
    assert_int_equal(owner("workspace/old/n"), 1234);
    assert_int_equal(owner("home"), 0);
    assert_int_equal(owner("home/codev"), 1234);
    assert_int_equal(owner("home/codev/x/y"), 1234);
    assert_int_equal(owner("mnt"), 0);
    assert_int_equal(owner("mnt/z"), 0);
}

int main(void)
{
#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        IN_ROOT(makes_what_is_missing),
        IN_ROOT(links_are_not_followed),
        IN_ROOT(a_file_in_the_way),
        IN_ROOT(owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
