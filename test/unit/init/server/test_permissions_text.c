/* Unit tests of init/server/permissions_text.c. */
#include "test/harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "init/server/permissions_text.h"
#include "test/harness/guard.h"

static struct permissions judge(const char *text, size_t length)
{
    struct permissions permissions = {.auto_accept = true};

    permissions_from_text(text, length, &permissions);
    return permissions;
}

static const struct {
    const char *text;
    bool on;
    const char *permission; /* what is passed on */
    const char *warning;    /* a part of it; NULL: none */
} texts[] = {
    {"{}", true, "", NULL},
    {"{\"auto_accept\":true}", true, "", NULL},
    {"{\"auto_accept\":false}", false, "", NULL},
    {" {\"name\": \"x\", \"auto_accept\" : false}\n", false, "", NULL},
    {"{\"auto\\u005faccept\":false}", false, "", NULL},
    {"{\"permission\":{}}", true, "", NULL},
    {"{\"permission\":{\"bash\":\"allow\",\"edit\":{\"*\":\"allow\"}}}", true, "", NULL},
    {"{\"permission\":{\"bash\":\"ask\"}}", false, "{\"bash\":\"ask\"}", NULL},
    {"{\"permission\": { \"bash\" : { \"rm *\" : \"deny\", \"ls\":\"allow\" } }}", false,
     "{\"bash\":{\"rm *\":\"deny\",\"ls\":\"allow\"}}", NULL},
    {"{\"permission\":{\"a\":[\"allow\",\"ask\"]}}", false, "{\"a\":[\"allow\",\"ask\"]}", NULL},
    {"{\"permission\":{\"a\":true}}", false, "{\"a\":true}", NULL},
    {"{\"permission\":{\"a\":null}}", false, "{\"a\":null}", NULL},
    {"{\"permission\":{\"a\":\"Allow\"}}", false, "{\"a\":\"Allow\"}", NULL},
    {"{\"permission\":{\"a\":\"allow \"}}", false, "{\"a\":\"allow \"}", NULL},
    {"{\"permission\":{\"a\":\"x\\\"  \\\\\"}}", false, "{\"a\":\"x\\\"  \\\\\"}", NULL},
    {"{\"permission\":\"allow\"}", true, "", NULL},
    {"{\"permission\":\"ask\"}", false, "\"ask\"", NULL},
    {"{\"permission\":{\"allow\":\"ask\"}}", false, "{\"allow\":\"ask\"}", NULL},
    {"{\"other\":{\"permission\":{\"a\":\"ask\"}}}", true, "", NULL},
    {"{\"auto_accept\":1}", false, "", "neither true nor false"},
    {"{\"auto_accept\":\"true\"}", false, "", "neither true nor false"},
    {"{\"auto_accept\":null}", false, "", "neither true nor false"},
    {"[]", false, "", "should be an object"},
    {"true", false, "", "should be an object"},
    {"", false, "", "codev.json:1:1"},
    {"{\"auto_accept\":true,}", false, "", "codev.json:1:"},
    {"{\"auto_accept\":true} x", false, "", "codev.json:1:"},
    {"// comment\n{}", false, "", "codev.json:1:1"},
    {"\xef\xbb\xbf{}", false, "", "codev.json:1:1"},
    {"{\"a\":\"\xff\"}", false, "", "codev.json:1:"},
    {"{\"auto_accept\":false,\"auto_accept\":true}", false, "", "twice"},
    {"{\"x\":1,\n \"y\":{\"permission\":1,\"permission\":2}}", false, "", "codev.json:2:"},
};

static void table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct permissions found = judge(texts[i].text, strlen(texts[i].text));
        if (found.auto_accept != texts[i].on)
            fail_msg("%s: %s", texts[i].text, found.warning);
        assert_string_equal(found.permission, texts[i].permission);
        if (!texts[i].warning)
            assert_string_equal(found.warning, "");
        else if (!strstr(found.warning, texts[i].warning))
            fail_msg("%s: %s", texts[i].text, found.warning);
    }
}

static void nul_byte(void **state)
{
    struct permissions found = judge("{}\0", 3);

    (void)state;
    assert_false(found.auto_accept);
}

/* 4095 bytes are passed on; one more is not, and off all the same. */
static void long_permission(void **state)
{
    static char text[8192];
    const size_t frame = strlen("{\"a\":\"\"}");
    struct permissions found;

    (void)state;
    for (size_t length = sizeof(found.permission) - 20; length < sizeof(found.permission) + 20;
         length++) {
        int used = snprintf(text, sizeof(text), "{\"permission\":{\"a\":\"%0*d\"}}",
                            (int)(length - frame), 7);
        found = judge(text, (size_t)used);
        assert_false(found.auto_accept);
        if (strlen(found.permission) == length)
            assert_string_equal(found.warning, "");
        else {
            assert_string_equal(found.permission, "");
            assert_non_null(strstr(found.warning, "longer"));
            assert_true(length >= sizeof(found.permission) - 2);
        }
    }
}

static void too_many_values(void **state)
{
    static char text[PERMISSIONS_FILE_MAX];
    struct permissions found;

    (void)state;
    memset(text, ' ', sizeof(text));
    memcpy(text, "{\"a\":[1", 7);
    for (size_t i = 7; i + 4 < sizeof(text); i += 2)
        memcpy(text + i, ",1", 2);
    memcpy(text + sizeof(text) - 2, "]}", 2);
    found = judge(text, sizeof(text));
    assert_false(found.auto_accept);
    assert_string_not_equal(found.warning, "");
}

/* Every beginning of a text, at a guard page: never read behind, never taken for more than it
 * is. */
static void beginnings(void **state)
{
    static const char text[] =
        "{\"permission\":{\"b\\\"\\\\\":\"a\\u0073k\"},\"auto_accept\":true}";

    (void)state;
    for (size_t length = 0; length < sizeof(text); length++) {
        char *copy = guard_copy(text, length);
        assert_false(judge(copy, length).auto_accept);
        guard_free(copy, length);
    }
}

static void toggles(void **state)
{
    static struct boot_config config;

    (void)state;
    config.server.cwd = "/workspace/app/src";
    config.auto_accept = true;
    assert_true(permissions_toggle(&config));
    config.directory_count = 3;
    config.directories[0] = (struct boot_directory){"/workspace/app", false};
    config.directories[1] = (struct boot_directory){"/workspace/app/src/deep", true};
    config.directories[2] = (struct boot_directory){"/workspace/ap", true};
    assert_false(permissions_toggle(&config));
    config.directories[2].path = "/workspace/app/src";
    assert_true(permissions_toggle(&config));
    config.server.cwd = "/workspace/application";
    config.auto_accept = false;
    assert_false(permissions_toggle(&config));
    config.directories[0] = (struct boot_directory){"/", true};
    assert_true(permissions_toggle(&config));
}

static void mounts(void **state)
{
    static struct boot_config config;

    (void)state;
    config.server.cwd = "/workspace/app/src";
    assert_null(permissions_mount(&config));
    config.mount_count = 3;
    config.mounts[0].target = "/workspace/app";
    config.mounts[1].target = "/workspace";
    config.mounts[2].target = "/workspace/app/s";
    assert_string_equal(permissions_mount(&config), "/workspace/app");
    config.mounts[2].target = "/workspace/app/src";
    assert_string_equal(permissions_mount(&config), "/workspace/app/src");
    config.server.cwd = "/home/codev";
    assert_null(permissions_mount(&config));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),           cmocka_unit_test(nul_byte),
        cmocka_unit_test(long_permission), cmocka_unit_test(too_many_values),
        cmocka_unit_test(beginnings),      cmocka_unit_test(toggles),
        cmocka_unit_test(mounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
