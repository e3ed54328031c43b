/* --mount: where a colon separates and where it is part of a name, and which guest paths are
 * refused. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "qemu-harness/launcher/folders/mount_spec.h"

static const struct {
    const char *text, *host, *guest;
    bool readonly;
} right[] = {
    {"/a", "/a", "", false},
    {"/a:/b", "/a", "/b", false},
    {"/a:/b:ro", "/a", "/b", true},
    {"/a:/b:rw", "/a", "/b", false},
    {"/a:ro", "/a", "", true},
    {".", ".", "", false},
    {"/a:b", "/a:b", "", false},
    {"/a:b:/c", "/a:b", "/c", false},
    {"/a:b:c:ro", "/a:b:c", "", true},
    {"/a:/b:c", "/a", "/b:c", false},
    {"/a\\:/b", "/a:/b", "", false},
    {"/a\\:/b:/c", "/a:/b", "/c", false},
    {"/a\\:ro", "/a:ro", "", false},
    {"/a\\\\:/b", "/a\\", "/b", false},
    {"/a\\b", "/a\\b", "", false},
    {"/a b,c'\"\n\xc3\xa9:/x y", "/a b,c'\"\n\xc3\xa9", "/x y", false},
    {"/a:/b/", "/a", "/b", false},
    {"C:\\Users\\x:/w", "C:\\Users\\x", "/w", false},
};

static void splits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        struct mount_spec spec;
        struct failure why;
        assert_int_equal(mount_spec_parse(&spec, right[i].text, &why), 0);
        assert_string_equal(spec.host, right[i].host);
        assert_string_equal(spec.guest, right[i].guest);
        assert_int_equal(spec.readonly, right[i].readonly);
    }
}

static void refuses(void **state)
{
    static const char *const wrong[] = {"",        ":/b",      "/a:/", "/a:/b/../c",
                                        "/a:/./b", "/a:/b//c", ":ro"};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct mount_spec spec;
        struct failure why = {""};
        assert_int_equal(mount_spec_parse(&spec, wrong[i], &why), -EINVAL);
        assert_non_null(strstr(why.text, "--mount"));
    }
}

static void refuses_long_paths(void **state)
{
    static char text[3 * PATH_MAX];
    struct mount_spec spec;
    struct failure why;
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    assert_int_equal(mount_spec_parse(&spec, text, &why), -ENAMETOOLONG);
    memcpy(text, "/a:/", 4);
    assert_int_equal(mount_spec_parse(&spec, text, &why), -ENAMETOOLONG);
    text[3 + PATH_MAX - 1] = '\0';
    for (size_t at = 3; at < 3 + PATH_MAX - 1; at += 200)
        text[at] = '/'; /* no name may be longer than NAME_MAX */
    assert_int_equal(mount_spec_parse(&spec, text, &why), 0);
    assert_int_equal(strlen(spec.guest), PATH_MAX - 1);
}

static void default_guest_path(void **state)
{
    static const struct {
        const char *text, *real, *guest;
    } cases[] = {
        {"/x/app", "/y/other", "/workspace/app"},
        {"/x/app///", "/x/app", "/workspace/app"},
        {".", "/y/other", "/workspace/other"},
        {"..", "/y", "/workspace/y"},
        {"app", "/x/app", "/workspace/app"},
        {"/x/..app", "/x/..app", "/workspace/..app"},
        {"/x:/opt/z", "/x", "/opt/z"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct mount_spec spec;
        struct failure why;
        assert_int_equal(mount_spec_parse(&spec, cases[i].text, &why), 0);
        assert_int_equal(mount_spec_default_guest(&spec, cases[i].real, &why), 0);
        assert_string_equal(spec.guest, cases[i].guest);
    }
    struct mount_spec root;
    struct failure why;
    assert_int_equal(mount_spec_parse(&root, "/", &why), 0);
    assert_int_equal(mount_spec_default_guest(&root, "/", &why), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits),
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_long_paths),
        cmocka_unit_test(default_guest_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
