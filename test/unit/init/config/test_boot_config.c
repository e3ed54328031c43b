/* Unit tests of init/config/boot_config.c and schema.c: every key, unknown and missing keys, wrong
 * types, sizes, the rules for values, and boot_relay_parse. Texts end at a guard page.
 */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "init/config/boot_config.h"
#include "test/harness/guard.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BASIS "\"protocol\":1,\"id\":\"b3f1\",\"server\":{\"argv\":[\"sh\"]}"

static struct boot_config config;
static enum boot_place place = PLACE_MACHINE;
static struct failure why;

static int parse(const char *text)
{
    size_t length = strlen(text);
    char *copy = guard_copy(text, length);
    int result = boot_config_parse(&config, place, copy, length, &why);

    guard_free(copy, length);
    return result;
}

static void accepts(const char *text)
{
    int result = parse(text);

    if (result != 0)
        fail_msg("refused: %s\n  %s", text, why.text);
}

/* Refused, with this in the reason. */
static void refuses(const char *text, const char *reason)
{
    if (parse(text) == 0)
        fail_msg("accepted: %s", text);
    if (!strstr(why.text, reason))
        fail_msg("%s\n  says: %s\n  not: %s", text, why.text, reason);
}

/* The basis with further members. */
static const char *with(const char *members)
{
    static char text[16384];

    snprintf(text, sizeof(text), "{" BASIS ",%s}", members);
    return text;
}

static const char *with_server(const char *members)
{
    static char text[16384];

    snprintf(text, sizeof(text), "{\"protocol\":1,\"id\":\"a\",\"server\":{%s}}", members);
    return text;
}

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
    refuses("[]", "must be an object, not an array");
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
    refuses(with("\"id\":\"b\""), "the key \"id\" appears twice");
    refuses(with_server("\"argv\":[\"x\"],\"\\u0061rgv\":[\"y\"]"), "appears twice");
    refuses(with_server("\"argv\":[\"x\"],\"env\":{\"A\":\"1\",\"A\":\"2\"}"),
            "server.env: the key \"A\"");
}

static void wrong_types(void **state)
{
    (void)state;
    refuses(with("\"hostname\":1"), "hostname: must be a string, not a number");
    refuses(with("\"hostname\":null"), "hostname: must be a string, not null");
    refuses(with("\"unix_ns\":\"1\""), "unix_ns: must be a number, not a string");
    refuses(with("\"unix_ns\":1.5"), "unix_ns: must be a whole number");
    refuses(with("\"unix_ns\":-1"), "unix_ns: must be 0 to");
    refuses(with("\"unix_ns\":99999999999999999999"), "unix_ns: must be 0 to");
    refuses(with("\"account\":[]"), "account: must be an object");
    refuses(with("\"mounts\":{}"), "mounts: must be an array");
    refuses(with("\"mounts\":[7]"), "mounts[0]: must be an object");
    refuses(with("\"user_namespaces\":1"), "user_namespaces: must be true or false, not a number");
    refuses(with("\"auto_accept\":true"), "auto_accept: must be an object");
    refuses(with("\"auto_accept\":{\"directories\":{\"/a\":1}}"), "must be true or false");
    refuses(with("\"egress\":[1]"), "egress[0]: must be a string");
    refuses(with_server("\"argv\":\"x\""), "server.argv: must be an array");
    refuses(with_server("\"argv\":[\"x\",2]"), "server.argv[1]: must be a string");
    refuses(with_server("\"argv\":[\"x\"],\"env\":[]"), "server.env: must be an object");
    refuses(with_server("\"argv\":[\"x\"],\"env\":{\"A\":1}"), "server.env.A: must be a string");
    refuses(with("\"relay\":[]"), "relay: must be an object");
    refuses(with("\"relay\":{\"transport\":\"x\",\"token\":\"" HEX "\"}"),
            "relay.transport: must be an array");
    refuses(with("\"relay\":{\"transport\":[1],\"token\":\"" HEX "\"}"),
            "relay.transport[0]: must be an address");
    refuses(with("\"way_in\":{\"listen\":1,\"secret\":\"" HEX "\"}"),
            "way_in.listen: must be an address");
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
    refuses("{\"protocol\":1,\"id\":\"\",\"server\":{\"argv\":[\"x\"]}}", "id: has 0 bytes");
    refuses("{\"protocol\":1,\"id\":\"A\",\"server\":{\"argv\":[\"x\"]}}",
            "id: \"A\" may hold a-z");
    refuses("{\"protocol\":1,\"id\":\"../x\",\"server\":{\"argv\":[\"x\"]}}", "id: ");
    refuses("{\"protocol\":1,\"id\":\"a123456789a123456789a123456789abc\",\"server\":{\"argv\":["
            "\"x\"]}}",
            "id: has 33 bytes");
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
    refuses(text, "server.argv: has more than 4096 entries");
    free(text);
    text = repeated("{" BASIS ",\"mounts\":[", "{\"type\":\"tmpfs\",\"target\":\"/mnt\"},",
                    BOOT_MOUNTS_MAX, "{\"type\":\"tmpfs\",\"target\":\"/mnt\"}]}");
    refuses(text, "mounts: has more than 64 entries");
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
    refuses(text, "egress: has more than 1025 entries");
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
    refuses(text, "server.argv[1]: has 131072 bytes");
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
    assert_non_null(strstr(why.text, "relay: must be an object"));
    assert_int_equal(relay.listen, 1); /* untouched */
}

/* ---- rules for values ---- */

static void accounts(void **state)
{
    (void)state;
    refuses(with("\"account\":{\"uid\":0}"), "account.uid: must be 1 to");
    refuses(with("\"account\":{\"gid\":0}"), "account.gid: must be 1 to");
    refuses(with("\"account\":{\"uid\":4294967295}"), "account.uid: must be 1 to");
    refuses(with("\"account\":{\"uid\":-5}"), "account.uid: must be 1 to");
    refuses(with("\"account\":{\"name\":\"root\"}"),
            "account.name: the server cannot run as \"root\"");
    refuses(with("\"account\":{\"name\":\"codev-relay\"}"),
            "account.name: the server cannot run as \"codev-relay\"");
    refuses(with("\"account\":{\"name\":\"a:b\"}"), "account.name");
    refuses(with("\"account\":{\"name\":\"\"}"), "account.name");
    refuses(with("\"account\":{\"name\":\"1abc\"}"), "account.name");
    accepts(with("\"account\":{\"uid\":4294967294}"));
}

static void mount_target(const char *target, const char *reason)
{
    char members[8192];

    snprintf(members, sizeof(members), "\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"%s\"}]",
             target);
    if (!reason)
        accepts(with(members));
    else
        refuses(with(members), reason);
}

static void mount_targets(void **state)
{
    char long_name[300], deep[6000] = "/mnt";

    (void)state;
    mount_target("/workspace", NULL);
    mount_target("/home/x", NULL);
    mount_target("/run/codev/x", NULL);
    mount_target("/opt/...", NULL);
    mount_target("workspace/x", "is not absolute");
    mount_target("/workspace/", "slash at its end");
    mount_target("/workspace//x", "empty name");
    mount_target("/workspace/./x", "has . or ..");
    mount_target("/workspace/../etc", "has . or ..");
    mount_target("/workspace/x/..", "has . or ..");
    mount_target("/", "is not below");
    mount_target("/etc", "is not below");
    mount_target("/workspacex", "is not below");
    mount_target("/run", "is not below");
    mount_target("/run/codev", "would hide");
    mount_target("/run/codev/sandbox.json", "would hide");
    mount_target("/workspace/a\\u0000b", "U+0000");
    memset(long_name, 'n', sizeof(long_name));
    memcpy(long_name, "/mnt/", 5);
    long_name[5 + 255] = '\0';
    mount_target(long_name, NULL);
    long_name[5 + 255] = 'n';
    long_name[5 + 256] = '\0';
    mount_target(long_name, "more than 255 bytes");
    while (strlen(deep) < 4094)
        strcat(deep, "/x");
    strcat(deep, "y");
    assert_int_equal(strlen(deep), 4095);
    mount_target(deep, NULL);
    strcat(deep, "y");
    mount_target(deep, "bytes; 1 to 4095 are allowed");
}

static void mount_sources(void **state)
{
    (void)state;
    refuses(with("\"mounts\":[{\"type\":\"nfs\",\"target\":\"/mnt\"}]"),
            "mounts[0].type: must be one of virtiofs, 9p, drvfs, bind, tmpfs, ext4, erofs");
    refuses(with("\"mounts\":[{\"type\":\"9p\",\"target\":\"/mnt\"}]"),
            "mounts[0]: the source of a 9p mount");
    refuses(with("\"mounts\":[{\"type\":\"virtiofs\",\"target\":\"/mnt\"}]"), "must be its tag");
    refuses(with("\"mounts\":[{\"type\":\"tmpfs\",\"source\":\"x\",\"target\":\"/mnt\"}]"),
            "has no source");
    refuses(with("\"mounts\":[{\"type\":\"bind\",\"source\":\"x\",\"target\":\"/mnt\"}]"),
            "is not absolute");
    refuses(with("\"mounts\":[{\"type\":\"ext4\",\"source\":\"/etc/x\",\"target\":\"/mnt\"}]"),
            "must be /dev/NAME");
    refuses(with("\"mounts\":[{\"type\":\"erofs\",\"source\":\"/dev/../x\",\"target\":\"/mnt\"}]"),
            "must be /dev/NAME");
    refuses(with("\"mounts\":[{\"type\":\"drvfs\",\"source\":\"C:\\\\x\",\"target\":\"/mnt\"}]"),
            "in WSL only");
    refuses(with("\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/mnt/"
                 "a\"},{\"type\":\"tmpfs\",\"target\":\"/mnt/b\"},"
                 "{\"type\":\"tmpfs\",\"target\":\"/mnt/a\"}]"),
            "mounts[2]: the target \"/mnt/a\" is used twice");
}

static void servers(void **state)
{
    (void)state;
    refuses(with_server("\"argv\":[]"), "server.argv: the name of the program is missing");
    refuses(with_server("\"argv\":[\"\"]"), "server.argv: the name of the program is empty");
    refuses(with_server("\"argv\":[\"a\\u0000b\"]"), "server.argv[0]: the string holds U+0000");
    refuses(with_server("\"argv\":[\"x\"],\"env\":{\"\":\"v\"}"), "not a valid variable name");
    refuses(with_server("\"argv\":[\"x\"],\"env\":{\"A=B\":\"v\"}"),
            "\"A=B\" is not a valid variable name");
    refuses(with_server("\"argv\":[\"x\"],\"cwd\":\"app\""),
            "server.cwd: the path \"app\" is not absolute");
    refuses(with_server("\"argv\":[\"x\"],\"cwd\":\"/a/../b\""), "server.cwd");
    refuses(with_server("\"argv\":[\"x\"],\"port\":65536"), "server.port: must be 0 to 65535");
    refuses(with_server("\"argv\":[\"x\"],\"port\":53"),
            "server.port: the relay listens on port 53");
    refuses(with_server("\"argv\":[\"x\"],\"stdio\":\"pty\""),
            "server.stdio: must be one of log, pipe, tty");
    refuses(with_server("\"argv\":[\"x\"],\"ready_timeout_ms\":0"),
            "server.ready_timeout_ms: must be 1 to 3600000");
    refuses(with_server("\"argv\":[\"x\"],\"rows\":65536"), "server.rows: must be 0 to 65535");
    accepts(with_server("\"argv\":[\"x\"],\"port\":null"));
    accepts(with_server("\"argv\":[\"x\"],\"port\":8788")); /* no relay: the port is free */
}

static void relays(void **state)
{
    (void)state;
    refuses(with("\"relay\":{\"transport\":[],\"token\":\"" HEX "\"}"),
            "relay.transport: must hold at least one address");
    refuses(with("\"relay\":{\"transport\":[\"x\"],\"token\":\"" HEX "\"}"),
            "relay.transport[0]: ");
    refuses(with("\"relay\":{\"transport\":[\"tcp:127.0.0.1:1\"],\"token\":\"" HEX "\"}"),
            "over vsock only");
    refuses(with("\"relay\":{\"transport\":[\"vsock:2:1\",\"vsock:2:2\",\"vsock:2:3\",\"vsock:2:"
                 "4\",\"vsock:2:5\"],"
                 "\"token\":\"" HEX "\"}"),
            "relay.transport: has more than 4 entries");
    refuses(with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"abc\"}"),
            "relay.token: must be 64 lower-case");
    refuses(with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "0\"}"),
            "relay.token: must be 64 lower-case");
    refuses(
        with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\",\"pin\":\"" HEX "\"}"),
        "relay.pin: must be \"sha256:\" and 64");
    refuses(with("\"relay\":{\"listen\":53,\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\"}"),
            "relay.listen: port 53 is used for DNS");
    refuses(with("\"way_in\":{\"listen\":\"tcp:127.0.0.1:0\",\"secret\":\"" HEX "\"}"),
            "must be vsock:PORT");
    refuses(with("\"way_in\":{\"listen\":\"vsock:0\",\"secret\":\"" HEX "\"}"),
            "must be vsock:PORT");
    refuses(with("\"way_in\":{\"listen\":\"vsock:4096\",\"secret\":\"\"}"),
            "way_in.secret: must be 64 lower-case");
    refuses("{\"protocol\":1,\"id\":\"a\",\"server\":{\"argv\":[\"x\"],\"port\":8788},"
            "\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\"}}",
            "server.port: the relay listens on port 8788");
}

static void secrets_stay_secret(void **state)
{
    (void)state;
    refuses(with("\"way_in\":{\"listen\":\"vsock:1\",\"secret\":\"hunter2\"}"), "way_in.secret");
    assert_null(strstr(why.text, "hunter2"));
    refuses(with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"hunter2\"}"), "relay.token");
    assert_null(strstr(why.text, "hunter2"));
}

static void egress_and_directories(void **state)
{
    const char *relay = "\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\"}";
    const char *wrong[] = {"", "A", "-a", ".a", "_a", "a/b", "a b", "\\u00e9"};
    char members[1024];

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(members, sizeof(members), "%s,\"egress\":[\"%s\"]", relay, wrong[i]);
        refuses(with(members), "egress[0]: ");
    }
    snprintf(members, sizeof(members), "%s,\"egress\":[\"%065d\"]", relay, 0);
    refuses(with(members), "egress[0]: has 65 bytes");
    snprintf(members, sizeof(members), "%s,\"egress\":[\"a\",\"a\"]", relay);
    refuses(with(members), "egress[1]: \"a\" is listed twice");
    snprintf(members, sizeof(members), "%s,\"egress\":[\"%064d\",\"a.b_c-d\"]", relay, 0);
    accepts(with(members));
    accepts(with("\"egress\":[]"));
    refuses(with("\"egress\":[\"gateway\"]"), "egress: needs \"relay\"");
    refuses(with("\"auto_accept\":{\"directories\":{\"a\":true}}"),
            "auto_accept.directories: the path \"a\"");
}

static void limits(void **state)
{
    (void)state;
    refuses(with("\"limits\":{\"pids\":0}"), "limits.pids: must be 1 to");
    refuses(with("\"limits\":{\"memory_mib\":-1}"), "limits.memory_mib: must be 0 to");
    refuses(with("\"limits\":{\"nofile\":63}"), "limits.nofile: must be 64 to");
}

/* In WSL there is TCP and no vsock, the broker's key is pinned, and the host's folders come in
 * other ways. */
static void in_wsl(void **state)
{
    (void)state;
    place = PLACE_WSL;
    accepts(
        with("\"relay\":{\"transport\":[\"tcp:gateway:1\",\"tcp:127.0.0.1:1\",\"tcp:[fd00::1]:1\"],"
             "\"token\":\"" HEX "\",\"pin\":\"sha256:" HEX "\"},"
             "\"way_in\":{\"listen\":\"tcp:127.0.0.1:0\",\"secret\":\"" HEX "\"}"));
    assert_int_equal(config.place, PLACE_WSL);
    accepts(with("\"way_in\":{\"listen\":\"tcp:[::1]:4096\",\"secret\":\"" HEX "\"}"));
    refuses(with("\"relay\":{\"transport\":[\"tcp:gateway:1\"],\"token\":\"" HEX "\"}"),
            "\"pin\" is required");
    refuses(with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\"}"),
            "over tcp only");
    refuses(with("\"relay\":{\"transport\":[\"unix:/a\"],\"token\":\"" HEX "\"}"), "over tcp only");
    refuses(with("\"way_in\":{\"listen\":\"tcp:0.0.0.0:0\",\"secret\":\"" HEX "\"}"),
            "must be tcp:127.0.0.1:PORT or tcp:[::1]:PORT");
    refuses(with("\"way_in\":{\"listen\":\"vsock:1\",\"secret\":\"" HEX "\"}"),
            "must be tcp:127.0.0.1:PORT or tcp:[::1]:PORT");
    refuses(with("\"mounts\":[{\"type\":\"9p\",\"source\":\"m0\",\"target\":\"/mnt\"}]"),
            "9p mounts do not exist in WSL");
    refuses(with("\"mounts\":[{\"type\":\"drvfs\",\"source\":\"\",\"target\":\"/mnt\"}]"),
            "a folder of Windows");
    refuses(with("\"mounts\":[{\"type\":\"drvfs\",\"source\":\"-o x\",\"target\":\"/mnt\"}]"),
            "a folder of Windows");
    place = PLACE_MACHINE;
    refuses(with("\"relay\":{\"transport\":[\"tcp:gateway:1\"],\"token\":\"" HEX "\"}"),
            "over vsock only");
}

/* A bind's source is another mount's target, or else a folder of the distribution. */
static void binds_in_wsl(void **state)
{
    (void)state;
    place = PLACE_WSL;
    accepts(
        with("\"mounts\":[{\"type\":\"drvfs\",\"source\":\"C:\\\\x\",\"target\":\"/workspace/x\"},"
             "{\"type\":\"bind\",\"source\":\"/workspace/x/y\",\"target\":\"/srv/y\"},"
             "{\"type\":\"bind\",\"source\":\"/workspace/xy\",\"target\":\"/srv/z\"},"
             "{\"type\":\"bind\",\"source\":\"/mnt/c/x\",\"target\":\"/mnt/c/x\"}]"));
    assert_false(config.mounts[0].outside);
    assert_false(config.mounts[1].outside);
    assert_true(config.mounts[2].outside);
    assert_true(config.mounts[3].outside);
    place = PLACE_MACHINE;
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
        cmocka_unit_test(accounts),
        cmocka_unit_test(mount_targets),
        cmocka_unit_test(mount_sources),
        cmocka_unit_test(servers),
        cmocka_unit_test(relays),
        cmocka_unit_test(secrets_stay_secret),
        cmocka_unit_test(egress_and_directories),
        cmocka_unit_test(limits),
        cmocka_unit_test(in_wsl),
        cmocka_unit_test(binds_in_wsl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
