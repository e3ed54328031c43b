/* Unit tests of init/config/boot_config.c and schema.c: every key, unknown and missing ones, wrong types, sizes;
 * and of boot_relay_parse. The rules for values: test_boot_config_check.c. */
#include <errno.h>
#include <stdlib.h>

#include "common/json/json.h"
#include "test/harness/boot_config_text.h"

static void the_least(void **state)
{
    (void)state;
    accepts("{" BASIS "}");
    assert_string_equal(config.id, "b3f1");
    assert_string_equal(config.hostname, "codev");
    assert_int_equal(config.unix_ns, 0);
    assert_string_equal(config.account_name, "codev");
    assert_int_equal(config.account_uid, (uid_t)-1);
    assert_int_equal(config.account_gid, (gid_t)-1);
    assert_int_equal(config.mount_count, 0);
    assert_string_equal(config.server.argv[0], "sh");
    assert_null(config.server.argv[1]);
    assert_null(config.server.env[0]);
    assert_string_equal(config.server.cwd, "/");
    assert_int_equal(config.server.port, 0);
    assert_int_equal(config.server.stdio, STDIO_LOG);
    assert_int_equal(config.server.ready_timeout_ms, 60000);
    assert_false(config.relay.present);
    assert_false(config.way_in.present);
    assert_int_equal(config.egress_count, 0);
    assert_true(config.auto_accept);
    assert_int_equal(config.limit_pids, 4096);
    assert_int_equal(config.limit_memory_mib, 0);
    assert_int_equal(config.limit_nofile, 65536);
    assert_false(config.user_namespaces);
}

/* The second half of what every_key checks. */
static void every_key_of_the_relay_and_after(void)
{
    assert_true(config.relay.present);
    assert_int_equal(config.relay.transport_count, 2);
    assert_int_equal(config.relay.transports[1].port, 50118);
    assert_string_equal(config.relay.token, HEX);
    assert_string_equal(config.relay.pin, HEX);
    assert_true(config.way_in.present);
    assert_int_equal(config.way_in.listen.port, 4096);
    assert_string_equal(config.way_in.secret, HEX);
    assert_true(config.way_in.framed);
    assert_string_equal(config.egress[1], "npm");
    assert_false(config.auto_accept);
    assert_int_equal(config.directory_count, 2);
    assert_string_equal(config.directories[0].path, "/workspace/app");
    assert_true(config.directories[0].auto_accept);
    assert_int_equal(config.limit_pids, 10);
    assert_int_equal(config.limit_memory_mib, 512);
    assert_int_equal(config.limit_nofile, 1024);
    assert_true(config.user_namespaces);
}

static void every_key(void **state)
{
    (void)state;
    accepts(
        "{\"protocol\":1,\"id\":\"b3f1\",\"hostname\":\"codev-b3f1\",\"unix_ns\":"
        "1790000000000000000,"
        "\"account\":{\"name\":\"codev\",\"uid\":1234,\"gid\":4321},"
        "\"mounts\":[{\"type\":\"virtiofs\",\"source\":\"m0\",\"target\":\"/workspace/a "
        "b,\\n\\u00e9\","
        "\"readonly\":true},{\"type\":\"9p\",\"source\":\"m1\",\"target\":\"/home/codev\"},"
        "{\"type\":\"tmpfs\",\"target\":\"/mnt/t\"},{\"type\":\"bind\",\"source\":\"/usr/share\","
        "\"target\":\"/opt/s\"},{\"type\":\"ext4\",\"source\":\"/dev/vdb\",\"target\":\"/srv\"},"
        "{\"type\":\"erofs\",\"source\":\"/dev/vdc\",\"target\":\"/run/codev/skills\"}],"
        "\"server\":{\"argv\":[\"/usr/bin/"
        "codev-server\",\"\",\"-x\"],\"env\":{\"K\":\"v=w\",\"E\":\"\"},"
        "\"cwd\":\"/workspace/a "
        "b,\\n\\u00e9\",\"port\":4096,\"stdio\":\"tty\",\"ready_timeout_ms\":5,"
        "\"rows\":50,\"cols\":132},"
        "\"relay\":{\"listen\":8788,\"transport\":[\"vsock:2:50117\",\"vsock:2:50118\"],\"token\":"
        "\"" HEX "\","
        "\"pin\":\"sha256:" HEX "\"},\"way_in\":{\"listen\":\"vsock:4096\",\"secret\":\"" HEX
        "\",\"framed\":true},"
        "\"egress\":[\"gateway\",\"npm\"],"
        "\"auto_accept\":{\"default\":false,\"directories\":{\"/workspace/app\":true,\"/\":false}},"
        "\"limits\":{\"pids\":10,\"memory_mib\":512,\"nofile\":1024},\"user_namespaces\":true}");
    assert_string_equal(config.hostname, "codev-b3f1");
    assert_int_equal(config.unix_ns, 1790000000000000000);
    assert_int_equal(config.account_uid, 1234);
    assert_int_equal(config.account_gid, 4321);
    assert_int_equal(config.mount_count, 6);
    assert_int_equal(config.mounts[0].type, MOUNT_VIRTIOFS);
    assert_string_equal(config.mounts[0].target, "/workspace/a b,\n\xc3\xa9");
    assert_true(config.mounts[0].readonly);
    assert_int_equal(config.mounts[1].type, MOUNT_9P);
    assert_string_equal(config.mounts[1].source, "m1");
    assert_false(config.mounts[1].readonly);
    assert_string_equal(config.mounts[2].source, "");
    assert_int_equal(config.mounts[5].type, MOUNT_EROFS);
    assert_string_equal(config.server.argv[1], "");
    assert_string_equal(config.server.argv[2], "-x");
    assert_null(config.server.argv[3]);
    assert_string_equal(config.server.env[0], "K=v=w");
    assert_string_equal(config.server.env[1], "E=");
    assert_null(config.server.env[2]);
    assert_int_equal(config.server.port, 4096);
    assert_int_equal(config.server.stdio, STDIO_TTY);
    assert_int_equal(config.server.ready_timeout_ms, 5);
    assert_int_equal(config.server.rows, 50);
    assert_int_equal(config.server.columns, 132);
    every_key_of_the_relay_and_after();
}

static void no_json(void **state)
{
    (void)state;
    refuses("", "boot configuration, column 1");
    refuses("{" BASIS, "boot configuration, column");
    refuses("{" BASIS ",}", "boot configuration, column");
    refuses("[]", "an object is wanted, this is an array");
}

static void unknown_keys(void **state)
{
    (void)state;
    refuses(with("\"sever\":1"), "unknown key \"sever\"");
    refuses(with("\"test\":{\"fail_stage\":\"mounts\"}"), "unknown key \"test\"");
    refuses(with_server("\"argv\":[\"x\"],\"Port\":1"), "server: unknown key \"Port\"");
    refuses(with("\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/mnt\",\"read_only\":true}]"),
            "mounts[0]: unknown key \"read_only\"");
    refuses(with("\"account\":{\"user\":1}"), "account: unknown key \"user\"");
    refuses(with("\"limits\":{\"pid\":1}"), "limits: unknown key \"pid\"");
    refuses(with("\"auto_accept\":{\"directory\":{}}"), "auto_accept: unknown key \"directory\"");
    refuses(with("\"way_in\":{\"listen\":\"vsock:1\",\"secret\":\"" HEX "\",\"a\":1}"),
            "way_in: unknown key \"a\"");
    refuses(with("\"relay\":{\"tokn\":1}"), "relay: unknown key \"tokn\"");
}

static void missing_and_double_keys(void **state)
{
    (void)state;
    refuses("{\"id\":\"a\",\"server\":{\"argv\":[\"x\"]}}", "the key \"protocol\" is missing");
    refuses("{\"protocol\":1,\"server\":{\"argv\":[\"x\"]}}", "the key \"id\" is missing");
    refuses("{\"protocol\":1,\"id\":\"a\"}", "the key \"server\" is missing");
    refuses(with_server("\"port\":1"), "server: the key \"argv\" is missing");
    refuses(with("\"mounts\":[{\"target\":\"/mnt\"}]"), "mounts[0]: the key \"type\" is missing");
    refuses(with("\"mounts\":[{\"type\":\"9p\"}]"), "mounts[0]: the key \"target\" is missing");
    refuses(with("\"way_in\":{\"listen\":\"vsock:1\"}"), "way_in: the key \"secret\" is missing");
    refuses(with("\"relay\":{\"token\":\"" HEX "\"}"), "relay: the key \"transport\" is missing");
    refuses(with("\"id\":\"b\""), "the key \"id\" stands there twice");
    refuses(with_server("\"argv\":[\"x\"],\"\\u0061rgv\":[\"y\"]"), "stands there twice");
    refuses(with_server("\"argv\":[\"x\"],\"env\":{\"A\":\"1\",\"A\":\"2\"}"),
            "server.env: the key \"A\"");
}

static void wrong_types(void **state)
{
    (void)state;
    refuses(with("\"hostname\":1"), "hostname: a string is wanted, this is a number");
    refuses(with("\"hostname\":null"), "hostname: a string is wanted, this is null");
    refuses(with("\"unix_ns\":\"1\""), "unix_ns: a number is wanted, this is a string");
    refuses(with("\"unix_ns\":1.5"), "unix_ns: a whole number is wanted");
    refuses(with("\"unix_ns\":-1"), "unix_ns: 0 to");
    refuses(with("\"unix_ns\":99999999999999999999"), "unix_ns: 0 to");
    refuses(with("\"account\":[]"), "account: an object is wanted");
    refuses(with("\"mounts\":{}"), "mounts: an array is wanted");
    refuses(with("\"mounts\":[7]"), "mounts[0]: an object is wanted");
    refuses(with("\"user_namespaces\":1"),
            "user_namespaces: true or false is wanted, this is a number");
    refuses(with("\"auto_accept\":true"), "auto_accept: an object is wanted");
    refuses(with("\"auto_accept\":{\"directories\":{\"/a\":1}}"), "true or false is wanted");
    refuses(with("\"egress\":[1]"), "egress[0]: a string is wanted");
    refuses(with_server("\"argv\":\"x\""), "server.argv: an array is wanted");
    refuses(with_server("\"argv\":[\"x\",2]"), "server.argv[1]: a string is wanted");
    refuses(with_server("\"argv\":[\"x\"],\"env\":[]"), "server.env: an object is wanted");
    refuses(with_server("\"argv\":[\"x\"],\"env\":{\"A\":1}"), "server.env.A: a string is wanted");
    refuses(with("\"relay\":[]"), "relay: an object is wanted");
    refuses(with("\"relay\":{\"transport\":\"x\",\"token\":\"" HEX "\"}"),
            "relay.transport: an array is wanted");
    refuses(with("\"relay\":{\"transport\":[1],\"token\":\"" HEX "\"}"),
            "relay.transport[0]: an address");
    refuses(with("\"way_in\":{\"listen\":1,\"secret\":\"" HEX "\"}"), "way_in.listen: an address");
}

static void null_is_absent(void **state)
{
    (void)state;
    accepts(with("\"relay\":null,\"way_in\":null"));
    assert_false(config.relay.present);
    assert_false(config.way_in.present);
    accepts(with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\",\"pin\":null}"));
    assert_string_equal(config.relay.pin, "");
    assert_int_equal(config.relay.listen, RELAY_PORT);
}

static void protocol_and_id(void **state)
{
    (void)state;
    refuses("{\"protocol\":2,\"id\":\"a\",\"server\":{\"argv\":[\"x\"]}}",
            "protocol: this codev-init");
    refuses("{\"protocol\":\"1\",\"id\":\"a\",\"server\":{\"argv\":[\"x\"]}}",
            "protocol: this codev-init");
    refuses("{\"protocol\":1,\"id\":\"\",\"server\":{\"argv\":[\"x\"]}}", "id: 0 bytes");
    refuses("{\"protocol\":1,\"id\":\"A\",\"server\":{\"argv\":[\"x\"]}}",
            "id: \"A\" holds more than");
    refuses("{\"protocol\":1,\"id\":\"../x\",\"server\":{\"argv\":[\"x\"]}}", "id: ");
    refuses("{\"protocol\":1,\"id\":\"a123456789a123456789a123456789abc\",\"server\":{\"argv\":["
            "\"x\"]}}",
            "id: 33 bytes");
}

static char *repeated(const char *before, const char *piece, unsigned count, const char *after)
{
    size_t length = strlen(before) + count * strlen(piece) + strlen(after) + 1;
    char *text = malloc(length), *at = text;

    at = stpcpy(at, before);
    for (unsigned i = 0; i < count; i++)
        at = stpcpy(at, piece);
    strcpy(at, after);
    return text;
}

static void list_limits(void **state)
{
    const char *before = "{\"protocol\":1,\"id\":\"a\",\"server\":{\"argv\":[\"x\"";
    char *text = repeated(before, ",\"y\"", BOOT_ARGUMENTS_MAX - 1, "]}}");

    (void)state;
    accepts(text);
    assert_string_equal(config.server.argv[BOOT_ARGUMENTS_MAX - 1], "y");
    assert_null(config.server.argv[BOOT_ARGUMENTS_MAX]);
    free(text);
    text = repeated(before, ",\"y\"", BOOT_ARGUMENTS_MAX, "]}}");
    refuses(text, "server.argv: more than 4096 entries");
    free(text);
    text = repeated("{" BASIS ",\"mounts\":[", "{\"type\":\"tmpfs\",\"target\":\"/mnt\"},",
                    BOOT_MOUNTS_MAX, "{\"type\":\"tmpfs\",\"target\":\"/mnt\"}]}");
    refuses(text, "mounts: more than 64 entries");
    free(text);
    text = repeated(before, ",[]", CONTROL_TOKENS_MAX, "]}}");
    refuses(text, "boot configuration, column");
    free(text);
}

/* `count` times the piece with the number in it, commas between. */
static void put_list(FILE *out, const char *before, const char *piece, unsigned count,
                     const char *after)
{
    fputs(before, out);
    for (unsigned i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", out);
        fprintf(out, piece, i);
    }
    fputs(after, out);
}

/* Every list as long as it may be, at once; `more` names in egress beyond. */
static char *everything(unsigned more)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    put_list(out, "{\"protocol\":1,\"id\":\"a\",\"server\":{\"argv\":[", "\"%u\"",
             BOOT_ARGUMENTS_MAX, "],");
    put_list(out, "\"env\":{", "\"V%u\":\"\"", BOOT_ENVIRONMENT_MAX, "}},");
    put_list(out, "\"mounts\":[",
             "{\"type\":\"virtiofs\",\"source\":\"m\",\"target\":\"/mnt/%u\",\"readonly\":true}",
             BOOT_MOUNTS_MAX, "],");
    put_list(out, "\"auto_accept\":{\"directories\":{", "\"/mnt/%u\":true", BOOT_DIRECTORIES_MAX,
             "}},");
    put_list(out, "\"egress\":[", "\"%064u\"", EGRESS_MAX + more, "],");
    fputs("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\"}}", out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void all_limits_together(void **state)
{
    char *text = everything(0);

    (void)state;
    accepts(text);
    assert_int_equal(config.egress_count, RULES_MAX + 1);
    assert_string_equal(config.egress[RULES_MAX] + 60, "1024");
    assert_int_equal(config.directory_count, BOOT_DIRECTORIES_MAX);
    free(text);
    text = everything(1);
    refuses(text, "egress: more than 1025 entries");
    free(text);
}

static void the_longest(void **state)
{
    const char *before = "{\"protocol\":1,\"id\":\"a\",\"server\":{\"argv\":[\"x\"";
    char piece[130 * 1024];

    (void)state;
    memset(piece, 'z', sizeof(piece));
    memcpy(piece, ",\"", 2);
    strcpy(piece + 2 + 128 * 1024 - 1, "\"");
    char *text = repeated(before, piece, 7, "]}}");
    accepts(text);
    assert_int_equal(strlen(config.server.argv[7]), 128 * 1024 - 1);
    assert_string_equal(config.server.argv[1], config.server.argv[7]);
    free(text);
    strcpy(piece + 2 + 128 * 1024, "\"");
    piece[2 + 128 * 1024 - 1] = 'z';
    text = repeated(before, piece, 1, "]}}");
    refuses(text, "server.argv[1]: 131072 bytes");
    free(text);
}

static void relay_command(void **state)
{
    const char *text =
        "{\"command\":\"relay\",\"relay\":{\"transport\":[\"vsock:2:7\"],\"token\":\"" HEX "\"}}";
    struct json_token tokens[32];
    struct json_position where;
    struct json document;
    struct boot_relay relay = {.present = false};

    (void)state;
    assert_int_equal(json_parse(&document, text, strlen(text), tokens, 32, &where), 0);
    assert_int_equal(boot_relay_parse(&relay, PLACE_MACHINE, &document,
                                      json_member(&document, 0, "relay"), &why),
                     0);
    assert_true(relay.present);
    assert_int_equal(relay.transports[0].port, 7);
    relay.listen = 1;
    assert_int_equal(boot_relay_parse(&relay, PLACE_MACHINE, &document,
                                      json_member(&document, 0, "command"), &why),
                     -EINVAL);
    assert_non_null(strstr(why.text, "relay: an object is wanted"));
    assert_int_equal(relay.listen, 1); /* untouched */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least),
        cmocka_unit_test(every_key),
        cmocka_unit_test(no_json),
        cmocka_unit_test(unknown_keys),
        cmocka_unit_test(missing_and_double_keys),
        cmocka_unit_test(wrong_types),
        cmocka_unit_test(null_is_absent),
        cmocka_unit_test(protocol_and_id),
        cmocka_unit_test(list_limits),
        cmocka_unit_test(all_limits_together),
        cmocka_unit_test(the_longest),
        cmocka_unit_test(relay_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
