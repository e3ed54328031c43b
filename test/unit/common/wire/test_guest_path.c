/* Unit tests of common/wire/guest_path.c. */
#include "test/harness/unit.h"

#include <limits.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "common/wire/guest_path.h"

static void normal_paths(void **state)
{
    static const char *const normal[] = {"/a", "/a/b", "/...", "/.a/..b", "/a b/\n", "/\xff"};
    static const char *const abnormal[] = {"",      "a",    "a/b",   "/a/", "//a",   "/a//b",
                                           "/.",    "/a/.", "/./a",  "/..", "/a/..", "/a/../b",
                                           "/a/b/", "..",   "./a/b", "//"};
    char path[PATH_MAX + 2] = "/";

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(normal); i++) {
        assert_null(guest_path_fault(normal[i]));
        assert_null(guest_folder_fault(normal[i]));
    }
    for (size_t i = 0; i < ARRAY_LENGTH(abnormal); i++) {
        assert_non_null(guest_path_fault(abnormal[i]));
        assert_non_null(guest_folder_fault(abnormal[i]));
    }
    assert_null(guest_path_fault("/"));
    assert_string_equal(guest_folder_fault("/"), "is the root folder");
    memset(path + 1, 'a', NAME_MAX);
    assert_null(guest_path_fault(path));
    path[NAME_MAX + 1] = 'a';
    assert_non_null(guest_path_fault(path));
    for (size_t i = 0; i + 1 < PATH_MAX; i += 2)
        memcpy(path + i, "/a", 2);
    assert_non_null(guest_path_fault(path));
    path[PATH_MAX - 2] = '\0';
    assert_null(guest_path_fault(path));
}

static void targets(void **state)
{
    static const char *const allowed[] = {
        "/workspace", "/workspace/a", "/home", "/home/x",      "/opt/...",       "/mnt",
        "/srv",       "/mnt/a b",     "/opt",  "/run/codev/x", "/run/codev/apts"};
    static const char *const elsewhere[] = {"/",           "/etc", "/usr/x", "/workspacex",
                                            "/run/codevx", "/run", "/tmp/x", "/dev/x"};
    static const char *const own[] = {"/run/codev", "/run/codev/sandbox.json",
                                      "/run/codev/sandbox.json/x", "/run/codev/apt",
                                      "/run/codev/apt/lists"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(allowed); i++)
        assert_null(guest_target_fault(allowed[i]));
    for (size_t i = 0; i < ARRAY_LENGTH(elsewhere); i++)
        assert_memory_equal(guest_target_fault(elsewhere[i]), "is not below /workspace, ", 25);
    for (size_t i = 0; i < ARRAY_LENGTH(own); i++)
        assert_string_equal(guest_target_fault(own[i]), "would hide files of the sandbox's own");
    assert_string_equal(guest_target_fault("/workspace/../etc"), "has . or .. in it");
}

static void disks(void **state)
{
    static const char *const others[] = {"/dev",      "/dev/",       "/dev/a/b", "/dev/..",
                                         "/dev/../x", "/etc/passwd", "vda",      ""};

    (void)state;
    assert_string_equal(guest_disk_name("/dev/vda"), "vda");
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        assert_null(guest_disk_name(others[i]));
}

static void below(void **state)
{
    (void)state;
    assert_true(guest_path_is_below("/a/b", "/a"));
    assert_true(guest_path_is_below("/a", "/a"));
    assert_true(guest_path_is_below("/a/b", "/"));
    assert_true(guest_path_is_below("/a/b", "/a/"));
    assert_false(guest_path_is_below("/ab", "/a"));
    assert_false(guest_path_is_below("/a", "/a/b"));
    assert_false(guest_path_is_below("/", "/a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_paths),
        cmocka_unit_test(targets),
        cmocka_unit_test(disks),
        cmocka_unit_test(below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
