/* Unit tests of init/server/sandbox_file.c: the text is read back by our own strict parser. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "common/json/json.h"
#include "init/server/environment.h"

#define TOKEN "6f6b6e6f7465787465787465787465787465787465787465787465787465aaaa"

static struct boot_config config;
static struct permissions permissions;
static char text[8192];
static struct json_token tokens[256];
static struct json document;

static void read_back(void)
{
    struct json_position where;
    int length = sandbox_file_text(text, sizeof(text), &config, &permissions);

    assert_true(length > 0);
    assert_int_equal(json_parse(&document, text, (size_t)length, tokens, 256, &where), 0);
}

static void assert_member(uint32_t object, const char *name, const char *wanted)
{
    char value[512];

    assert_true(
        json_string(&document, json_member(&document, object, name), value, sizeof(value)) >= 0);
    assert_string_equal(value, wanted);
}

static void fill(void)
{
    memset(&config, 0, sizeof(config));
    config.id = "b3f1";
    config.relay.present = true;
    config.relay.listen = 8788;
    strcpy(config.relay.token, TOKEN);
    strcpy(config.way_in.secret, TOKEN);
    config.egress[0] = "gateway";
    config.egress[1] = "npm";
    config.egress_count = 2;
    config.mount_count = 2;
    config.mounts[0] = (struct boot_mount){
        .type = MOUNT_VIRTIOFS, .source = "m0", .target = "/workspace/a \"b\"\n,c"};
    config.mounts[1] = (struct boot_mount){
        .type = MOUNT_TMPFS, .source = "", .target = "/home/codev", .readonly = true};
    permissions.auto_accept = false;
    strcpy(permissions.permission, "{\"bash\":\"ask\"}");
}

static void with_egress(void **state)
{
    (void)state;
    fill();
    read_back();
    assert_member(0, "id", "b3f1");
    uint32_t egress = json_member(&document, 0, "egress");
    assert_member(egress, "gateway", "http://127.0.0.1:8788/gateway");
    assert_member(egress, "npm", "http://127.0.0.1:8788/npm");
    uint32_t mounts = json_member(&document, 0, "mounts");
    assert_int_equal(tokens[mounts].size, 2);
    uint32_t first = json_first(&document, mounts), second = json_next(&document, mounts, first);
    assert_member(first, "type", "virtiofs");
    assert_member(first, "target", "/workspace/a \"b\"\n,c");
    assert_int_equal(tokens[json_member(&document, first, "readonly")].type, JSON_FALSE);
    assert_int_equal(tokens[json_member(&document, second, "readonly")].type, JSON_TRUE);
    uint32_t decided = json_member(&document, 0, "permissions");
    assert_int_equal(tokens[json_member(&document, decided, "auto_accept")].type, JSON_FALSE);
    assert_member(decided, "permission", "{\"bash\":\"ask\"}");
    assert_null(strstr(text, TOKEN));
}

static void without_egress(void **state)
{
    (void)state;
    fill();
    config.relay.present = false;
    config.mount_count = 0;
    permissions = (struct permissions){.auto_accept = true};
    read_back();
    uint32_t egress = json_member(&document, 0, "egress");
    assert_int_equal(tokens[egress].type, JSON_OBJECT);
    assert_int_equal(tokens[egress].size, 0);
    assert_null(strstr(text, "http"));
    uint32_t decided = json_member(&document, 0, "permissions");
    assert_int_equal(tokens[json_member(&document, decided, "auto_accept")].type, JSON_TRUE);
    assert_int_equal(json_member(&document, decided, "permission"), 0);
}

static void no_room(void **state)
{
    (void)state;
    fill();
    int length = sandbox_file_text(text, sizeof(text), &config, &permissions);
    assert_int_equal(sandbox_file_text(text, (size_t)length + 1, &config, &permissions), length);
    assert_int_equal(sandbox_file_text(text, (size_t)length, &config, &permissions), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_egress),
        cmocka_unit_test(without_egress),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
