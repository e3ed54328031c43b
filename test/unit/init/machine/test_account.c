/* Unit tests of init/machine/account.c on a root directory of their own. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/io.h"
#include "init/machine/account.h"

static char root_path[] = "/tmp/codev-test-account-XXXXXX";
static int root = -1;

static void write_text(const char *path, const char *text)
{
    assert_int_equal(io_write_file(root, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, text), 0);
}

static uid_t owner(const char *path)
{
    struct stat status;

    assert_int_equal(fstatat(root, path, &status, AT_SYMLINK_NOFOLLOW), 0);
    return status.st_uid;
}

static int make_image(void **state)
{
    (void)state;
    strcpy(root_path + strlen(root_path) - 6, "XXXXXX");
    if (!mkdtemp(root_path))
        return -1;
    root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    mkdirat(root, "etc", 0755);
    mkdirat(root, "home", 0755);
    mkdirat(root, "home/codev", 0755);
    mkdirat(root, "home/codev/.config", 0700);
    write_text("etc/passwd", "root:x:0:0::/root:/bin/sh\n"
                             "codev:x:1000:1000::/home/codev:/bin/sh\n"
                             "codev-relay:x:990:990::/nonexistent:/bin/false\n");
    write_text("etc/group", "root:x:0:\ncodev:x:1000:\ncodev-relay:x:990:\n");
    write_text("home/codev/.profile", "");
    write_text("home/codev/.config/x", "");
    write_text("etc/precious", "");
    assert_int_equal(symlinkat("../../etc/precious", root, "home/codev/link"), 0);
    assert_int_equal(symlinkat("../../etc", root, "home/codev/directory-link"), 0);
    return root < 0;
}

static int remove_image(void **state)
{
    char command[128];

    (void)state;
    close(root);
    snprintf(command, sizeof(command), "rm -rf '%s'", root_path);
    return system(command);
}

static void images_own_ids(void **state)
{
    struct account account;
    struct stat before, after;

    (void)state;
    fstatat(root, "etc/passwd", &before, 0);
    assert_int_equal(account_apply_in(root, "codev", (uid_t)-1, (gid_t)-1, &account, NULL), 0);
    assert_int_equal(account.uid, 1000);
    assert_int_equal(account_apply_in(root, "codev", 1000, 1000, &account, NULL), 0);
    fstatat(root, "etc/passwd", &after, 0);
    assert_int_equal(before.st_ino, after.st_ino); /* not rewritten */
}

static void other_ids(void **state)
{
    struct account account;
    char text[512];

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(account_apply_in(root, "codev", 501, 20, &account, NULL), 0);
    assert_int_equal(account.uid, 501);
    assert_int_equal(account.gid, 20);
    io_read_file(root, "etc/passwd", 0, text, sizeof(text));
    assert_non_null(strstr(text, "codev:x:501:20:"));
    io_read_file(root, "etc/group", 0, text, sizeof(text));
    assert_non_null(strstr(text, "codev:x:20:"));
    assert_int_equal(owner("home"), 0);
    assert_int_equal(owner("home/codev"), 501);
    assert_int_equal(owner("home/codev/.config/x"), 501);
    assert_int_equal(owner("home/codev/link"), 501);
    assert_int_equal(owner("home/codev/directory-link"), 501);
    assert_int_equal(owner("etc"), 0);
    assert_int_equal(owner("etc/precious"), 0);
    assert_int_equal(owner("etc/passwd"), 0);
    assert_int_equal(faccessat(root, "etc/passwd.codev", F_OK, 0), -1);
}

static void refused(void **state)
{
    static const struct {
        uid_t uid;
        gid_t gid;
        const char *part;
    } ids[] = {
        {0, 1000, "root"},
        {1000, 0, "root"},
        {990, 1000, "codev-relay"},
        {1000, 990, "codev-relay"},
    };
    struct account account;
    struct failure why;
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_int_equal(account_apply_in(root, "codev", ids[i].uid, ids[i].gid, &account, &why),
                         -EPERM);
        assert_non_null(strstr(why.text, ids[i].part));
    }
    assert_int_equal(account_apply_in(root, "root", (uid_t)-1, (gid_t)-1, &account, &why), -EPERM);
    assert_int_equal(account_apply_in(root, "nobody", (uid_t)-1, (gid_t)-1, &account, &why),
                     -ENOENT);
    io_read_file(root, "etc/passwd", 0, text, sizeof(text));
    assert_non_null(strstr(text, "codev:x:1000:1000:"));
}

static void home_that_is_a_link(void **state)
{
    struct account account;
    struct failure why;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(renameat(root, "home/codev", root, "home/other"), 0);
    assert_int_equal(symlinkat("../etc", root, "home/codev"), 0);
    assert_int_equal(account_apply_in(root, "codev", 501, 501, &account, &why), -ELOOP);
    assert_non_null(strstr(why.text, "/home/codev is a symbolic link"));
    assert_int_equal(owner("etc"), 0);
}

static void home_that_is_missing(void **state)
{
    struct account account;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(renameat(root, "home/codev", root, "home/other"), 0);
    assert_int_equal(account_apply_in(root, "codev", 501, 501, &account, NULL), 0);
    assert_int_equal(owner("home/codev"), 501);
}

static void home_that_is_no_skeleton(void **state)
{
    struct account account;
    struct failure why;
    char name[64];

    (void)state;
    if (geteuid() != 0)
        skip();
    for (int i = 0; i < 4200; i++) {
        snprintf(name, sizeof(name), "home/codev/%d", i);
        write_text(name, "");
    }
    assert_int_equal(account_apply_in(root, "codev", 501, 501, &account, &why), -E2BIG);
    assert_non_null(strstr(why.text, "/home/codev has more than 4096 entries"));
}

int main(void)
{
#define ON_IMAGE(test) cmocka_unit_test_setup_teardown(test, make_image, remove_image)
    const struct CMUnitTest tests[] = {
        ON_IMAGE(images_own_ids),
        ON_IMAGE(other_ids),
        ON_IMAGE(refused),
        ON_IMAGE(home_that_is_a_link),
        ON_IMAGE(home_that_is_missing),
        ON_IMAGE(home_that_is_no_skeleton),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
