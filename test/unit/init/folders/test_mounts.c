/* Unit tests of init/folders/mounts.c: the order, and real mounts in a namespace and a root
 * directory of their own. */
#include "test/harness/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/os/io.h"
#include "init/folders/mounts.h"

static const struct account account = {
    .name = "codev", .home = "/home/codev", .uid = 1234, .gid = 1235};
static struct boot_config config;

static void add(enum mount_type type, const char *source, const char *target)
{
    config.mounts[config.mount_count++] =
        (struct boot_mount){.type = type, .source = source, .target = target};
}

static int clear(void **state)
{
    (void)state;
    memset(&config, 0, sizeof(config));
    return 0;
}

/* Where in the order a mount stands. */
static unsigned place(unsigned index)
{
    const struct boot_mount *order[BOOT_MOUNTS_MAX];

    assert_int_equal(mounts_order(&config, order), 0);
    for (unsigned i = 0; i < config.mount_count; i++) {
        if (order[i] == &config.mounts[index])
            return i;
    }
    fail_msg("mount %u is missing from the order", index);
    return 0;
}

static void parents_first(void **state)
{
    (void)state;
    add(MOUNT_TMPFS, "", "/workspace/a/b/c");
    add(MOUNT_TMPFS, "", "/workspace/a/b");
    add(MOUNT_TMPFS, "", "/workspace/ab");
    add(MOUNT_TMPFS, "", "/workspace/a");
    add(MOUNT_TMPFS, "", "/workspace");
    assert_true(place(4) < place(3) && place(3) < place(1) && place(1) < place(0));
    assert_true(place(4) < place(2));
}

/* A bind whose source lies in a mount, and a mount inside a bind's target. */
static void sources_first(void **state)
{
    (void)state;
    add(MOUNT_BIND, "/workspace/z/deep", "/home/codev/x");
    add(MOUNT_TMPFS, "", "/workspace/z");
    add(MOUNT_TMPFS, "", "/home/codev");
    assert_true(place(1) < place(0) && place(2) < place(0));
}

static void binds_in_a_circle(void **state)
{
    const struct boot_mount *order[BOOT_MOUNTS_MAX];
    struct failure why;

    (void)state;
    add(MOUNT_BIND, "/workspace/b", "/workspace/a");
    add(MOUNT_BIND, "/workspace/a", "/workspace/b");
    assert_int_equal(mounts_order(&config, order), -ELOOP);
    assert_int_equal(mounts_apply(&config, &account, &why), -ELOOP);
}

static void full_table(void **state)
{
    static char targets[BOOT_MOUNTS_MAX][32];
    const struct boot_mount *order[BOOT_MOUNTS_MAX];

    (void)state;
    for (int i = 0; i < BOOT_MOUNTS_MAX; i++) {
        snprintf(targets[i], sizeof(targets[i]), "/workspace/%d", i);
        add(MOUNT_TMPFS, "", targets[i]);
    }
    assert_int_equal(mounts_order(&config, order), 0);
}

static void refused_targets(void **state)
{
    static const char *const targets[] = {
        "/",          "/etc",        "/usr/x", "/workspacex", "/workspace/../etc",
        "/run/codev", "/run",        "/tmp/x", "workspace",   "/workspace/",
        "/dev/x",     "/home//codev"};
    struct failure why;

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        clear(NULL);
        add(MOUNT_TMPFS, "", targets[i]);
        assert_int_equal(mounts_apply(&config, &account, &why), -EINVAL);
    }
    clear(NULL);
    add(MOUNT_TMPFS, "", "/workspace/a");
    add(MOUNT_TMPFS, "", "/workspace/a");
    assert_int_equal(mounts_apply(&config, &account, &why), -EEXIST);
}

/* --- real mounts ------------------------------------------------------------------------------ */

/* An empty root on a tmpfs, with /proc for descriptors' names. */
static void enter_own_root(void)
{
    static const char *const directories[] = {"etc", "workspace", "home", "proc", "secret"};

    CHILD_ASSERT(unshare(CLONE_NEWNS) == 0);
    CHILD_ASSERT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHILD_ASSERT(mount("tmpfs", "/mnt", "tmpfs", 0, NULL) == 0 && chdir("/mnt") == 0);
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
        CHILD_ASSERT(mkdir(directories[i], 0755) == 0);
    CHILD_ASSERT(mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL) == 0);
    CHILD_ASSERT(chroot(".") == 0 && chdir("/") == 0);
}

static void apply(void)
{
    struct failure why;

    if (mounts_apply(&config, &account, &why) < 0) {
        dprintf(STDERR_FILENO, "%s\n", why.text);
        _exit(1);
    }
}

static unsigned long flags_of(const char *path)
{
    struct statvfs status;

    CHILD_ASSERT(statvfs(path, &status) == 0);
    return status.f_flag;
}

#define ODD "/workspace/a b,\"c\" 'd'\n\\:\xff"

static void odd_names(void)
{
    struct stat status;
    char text[1024];

    enter_own_root();
    add(MOUNT_TMPFS, "", ODD);
    add(MOUNT_BIND, ODD, "/home/codev/x,y");
    config.mounts[1].readonly = true;
    apply();
    CHILD_ASSERT(stat(ODD, &status) == 0 && status.st_uid == 1234 && status.st_gid == 1235);
    CHILD_ASSERT((status.st_mode & 07777) == 0755);
    CHILD_ASSERT((flags_of(ODD) & (ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_RDONLY)) ==
                 (ST_NOSUID | ST_NODEV));
    CHILD_ASSERT((flags_of("/home/codev/x,y") & (ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_RDONLY)) ==
                 (ST_NOSUID | ST_NODEV | ST_RDONLY));
    CHILD_ASSERT(io_write_file(AT_FDCWD, ODD "/f", O_WRONLY | O_CREAT, 0644, "x") == 0);
    CHILD_ASSERT(access("/home/codev/x,y/f", R_OK) == 0);
    CHILD_ASSERT(open("/home/codev/x,y/g", O_WRONLY | O_CREAT, 0644) == -1 && errno == EROFS);
    CHILD_ASSERT(io_read_file(AT_FDCWD, "/etc/gitconfig", 0, text, sizeof(text)) > 0);
    CHILD_ASSERT(strstr(text, "a b,\\\"c\\\" 'd'\\n\\\\:\xff\""));
    CHILD_ASSERT(stat("/home/codev", &status) == 0 && status.st_uid == 1234);
    mounts_undo(&config);
    CHILD_ASSERT(access("/home/codev/x,y/f", F_OK) == -1 && access(ODD "/f", F_OK) == -1);
}

/* A bind copies what is mounted below its source, all of it read-only. */
static void nested_bind(void)
{
    enter_own_root();
    add(MOUNT_TMPFS, "", "/workspace/a");
    add(MOUNT_TMPFS, "", "/workspace/a/inner");
    add(MOUNT_BIND, "/workspace/a", "/mnt/copy");
    config.mounts[2].readonly = true;
    apply();
    CHILD_ASSERT(io_write_file(AT_FDCWD, "/workspace/a/inner/f", O_WRONLY | O_CREAT, 0644, "x") ==
                 0);
    CHILD_ASSERT(access("/mnt/copy/inner/f", R_OK) == 0);
    CHILD_ASSERT(open("/mnt/copy/inner/f", O_WRONLY) == -1 && errno == EROFS);
}

/* FIELD.md: a link inside a mounted folder redirected a later mount. The folder is a directory made
 * before. */
static void link_in_a_folder(void)
{
    struct failure why;

    enter_own_root();
    CHILD_ASSERT(mkdir("/srv", 0755) == 0 && mkdir("/srv/folder", 0755) == 0);
    CHILD_ASSERT(symlink("/secret", "/srv/folder/node_modules") == 0);
    add(MOUNT_BIND, "/srv/folder", "/workspace/app");
    add(MOUNT_TMPFS, "", "/workspace/app/node_modules");
    CHILD_ASSERT(mounts_apply(&config, &account, &why) == -ELOOP);
    CHILD_ASSERT(strstr(why.text, "mount /workspace/app/node_modules (tmpfs)") == why.text);
    CHILD_ASSERT(strstr(why.text, "symbolic link"));
    struct stat secret, root;
    CHILD_ASSERT(stat("/secret", &secret) == 0 && stat("/", &root) == 0 &&
                 secret.st_dev == root.st_dev);
}

static void link_as_source(void)
{
    struct failure why;

    enter_own_root();
    CHILD_ASSERT(symlink("/secret", "/workspace/link") == 0);
    add(MOUNT_BIND, "/workspace/link", "/home/codev/x");
    CHILD_ASSERT(mounts_apply(&config, &account, &why) < 0);
    CHILD_ASSERT(strstr(why.text, "open the source"));
}

static const struct {
    enum mount_type type;
    const char *source, *part;
} failing[] = {
    {MOUNT_BIND, "/nowhere", "open the source: No such file or directory"},
    {MOUNT_BIND, "workspace", "the source is not absolute"},
    {MOUNT_EXT4, "/dev/does-not-exist", "/dev/does-not-exist"},
    {MOUNT_EXT4, "/dev/../etc/passwd", "/dev/NAME"},
    {MOUNT_EROFS, "/etc/passwd", "/dev/NAME"},
    {MOUNT_DRVFS, "C:\\", "WSL only"},
};

/* The folder's name, and what is wrong with it. */
static void failures_are_named(void)
{
    struct failure why;

    enter_own_root();
    for (size_t i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
        clear(NULL);
        add(failing[i].type, failing[i].source, "/workspace/the\nfolder");
        CHILD_ASSERT(mounts_apply(&config, &account, &why) < 0);
        if (strncmp(why.text, "mount /workspace/the\\x0afolder (", 32) != 0 ||
            !strstr(why.text, failing[i].part)) {
            dprintf(STDERR_FILENO, "%s\n", why.text);
            _exit(1);
        }
    }
}

static void read_only_parent(void)
{
    struct failure why;

    enter_own_root();
    add(MOUNT_TMPFS, "", "/workspace/a");
    add(MOUNT_TMPFS, "", "/workspace/a/missing");
    config.mounts[0].readonly = true;
    CHILD_ASSERT(mounts_apply(&config, &account, &why) == -EROFS);
    CHILD_ASSERT(strstr(why.text, "/workspace/a/missing"));
}

#define ROOT_TEST(name)                                                                            \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        in_root_child(name);                                                                       \
    }
ROOT_TEST(odd_names)
ROOT_TEST(nested_bind)
ROOT_TEST(link_in_a_folder)
ROOT_TEST(link_as_source)
ROOT_TEST(failures_are_named)
ROOT_TEST(read_only_parent)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(parents_first, clear),
        cmocka_unit_test_setup(sources_first, clear),
        cmocka_unit_test_setup(binds_in_a_circle, clear),
        cmocka_unit_test_setup(full_table, clear),
        cmocka_unit_test_setup(refused_targets, clear),
        cmocka_unit_test_setup(test_odd_names, clear),
        cmocka_unit_test_setup(test_nested_bind, clear),
        cmocka_unit_test_setup(test_link_in_a_folder, clear),
        cmocka_unit_test_setup(test_link_as_source, clear),
        cmocka_unit_test_setup(test_failures_are_named, clear),
        cmocka_unit_test_setup(test_read_only_parent, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
