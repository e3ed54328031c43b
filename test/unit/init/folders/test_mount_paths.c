/* The users of common/wire/guest_path.h agree: what the parser of the boot configuration accepts,
 * the privileged side accepts too, and what one refuses the other refuses, for targets and for
 * sources. The launcher accepts every guest path that they accept.
 */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "init/folders/mount_types.h"
#include "init/folders/mounts.h"
#include "init/system/mount_target.h"
#include "qemu-harness/launcher/folders/mount_spec.h"

static const struct {
    const char *path;
    bool target, source,
        normal; /* allowed as a target, as a bind's source; no name in it is wrong */
} paths[] = {
    {"/workspace", true, true, true},
    {"/workspace/a b", true, true, true},
    {"/home/codev", true, true, true},
    {"/opt/...", true, true, true},
    {"/mnt", true, true, true},
    {"/srv/x", true, true, true},
    {"/run/codev/skills", true, true, true},
    {"/run/codev", false, true, true},
    {"/run/codev/sandbox.json", false, true, true},
    {"/run/codev/sandbox.json/x", false, true, true},
    {"/run/codev/apt", false, true, true},
    {"/run", false, true, true},
    {"/etc", false, true, true},
    {"/usr/share", false, true, true},
    {"/workspacex", false, true, true},
    {"/dev/shm", false, true, true},
    {"/", false, false, false},
    {"workspace", false, false, false},
    {"/workspace/", false, false, false},
    {"/workspace//x", false, false, false},
    {"/workspace/./x", false, false, false},
    {"/workspace/../etc", false, false, false},
    {"/workspace/..", false, false, false},
    {"//workspace", false, false, false},
};

static bool parser_accepts(const char *type, const char *source, const char *target)
{
    static struct boot_config config;
    struct failure why;
    char text[1024];
    int length =
        snprintf(text, sizeof(text),
                 "{\"protocol\":1,\"id\":\"a\",\"server\":{\"argv\":[\"sh\"]},\"mounts\":[{"
                 "\"type\":\"%s\",\"source\":\"%s\",\"target\":\"%s\"}]}",
                 type, source, target);

    return boot_config_parse(&config, PLACE_MACHINE, text, (size_t)length, &why) == 0;
}

static bool mounts_accept(const char *target)
{
    static struct boot_config config;
    struct failure why;

    config.mounts[0] = (struct boot_mount){.type = MOUNT_TMPFS, .source = "", .target = target};
    config.mount_count = 1;
    return mounts_check(&config, &why) == 0;
}

/* EINVAL is the refusal of a path; an absent file or right gives another error. */
static bool source_is_refused(enum mount_type type, const char *source)
{
    static const struct account account = {.name = "codev", .home = "/home/codev"};
    const struct boot_mount mount = {.type = type, .source = source, .target = "/mnt/x"};
    struct failure why = {.text = ""};
    CLEANUP_FD int made = mount_type_make(&mount, &account, &why);

    return made == -EINVAL;
}

static void targets(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        if (parser_accepts("tmpfs", "", paths[i].path) != paths[i].target)
            fail_msg("the parser is wrong about the target %s", paths[i].path);
        if (mounts_accept(paths[i].path) != paths[i].target)
            fail_msg("the stage `mounts` is wrong about the target %s", paths[i].path);
    }
}

static void bind_sources(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        if (parser_accepts("bind", paths[i].path, "/mnt/x") != paths[i].source)
            fail_msg("the parser is wrong about the source %s", paths[i].path);
        if (source_is_refused(MOUNT_BIND, paths[i].path) == paths[i].source)
            fail_msg("the stage `mounts` is wrong about the source %s", paths[i].path);
    }
}

static void disks(void **state)
{
    static const struct {
        const char *source;
        bool allowed;
    } disks[] = {{"/dev/no-such-disk", true},
                 {"/dev/a/b", false},
                 {"/dev/", false},
                 {"/dev", false},
                 {"/dev/..", false},
                 {"/dev/../etc/x", false},
                 {"/etc/passwd", false},
                 {"no-such-disk", false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(disks); i++) {
        assert_int_equal(parser_accepts("ext4", disks[i].source, "/mnt/x"), disks[i].allowed);
        assert_int_equal(source_is_refused(MOUNT_EXT4, disks[i].source), !disks[i].allowed);
    }
}

static void a_path_that_is_walked(void **state)
{
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        struct failure why;
        if (!paths[i].normal)
            assert_int_equal(mount_target_open(root, paths[i].path, 0755, NULL, &why), -EINVAL);
    }
}

/* It removes a slash at the end, takes "HOST:name" for a path of the host, and leaves it to the
 * guest which targets are allowed. */
static void launcher(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        size_t length = strlen(paths[i].path);
        struct mount_spec spec;
        struct failure why;
        char text[256];
        if (paths[i].path[0] != '/' || (length > 1 && paths[i].path[length - 1] == '/'))
            continue;
        snprintf(text, sizeof(text), "/host:%s", paths[i].path);
        assert_int_equal(mount_spec_parse(&spec, text, &why) == 0, paths[i].normal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets),  cmocka_unit_test(bind_sources),
        cmocka_unit_test(disks),    cmocka_unit_test(a_path_that_is_walked),
        cmocka_unit_test(launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
