/* Unit tests of init/config/boot_config_check.c and boot_config_relay.c: which values are refused, and why. */

#include "test/harness/boot_config_text.h"

static void accounts(void **state)
{
    (void)state;
    refuses(with("\"account\":{\"uid\":0}"), "account.uid: 1 to");
    refuses(with("\"account\":{\"gid\":0}"), "account.gid: 1 to");
    refuses(with("\"account\":{\"uid\":4294967295}"), "account.uid: 1 to");
    refuses(with("\"account\":{\"uid\":-5}"), "account.uid: 1 to");
    refuses(with("\"account\":{\"name\":\"root\"}"), "account.name: \"root\"");
    refuses(with("\"account\":{\"name\":\"codev-relay\"}"), "account.name: \"codev-relay\"");
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
    if (reason == NULL)
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
    mount_target("/run/codev", "is not below");
    mount_target("/run/codev/sandbox.json", "is not below");
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
    mount_target(deep, "bytes, but 1 to 4095");
}

static void mount_sources(void **state)
{
    (void)state;
    refuses(with("\"mounts\":[{\"type\":\"nfs\",\"target\":\"/mnt\"}]"),
            "mounts[0].type: one of virtiofs, 9p, drvfs, bind, tmpfs, ext4, erofs is wanted");
    refuses(with("\"mounts\":[{\"type\":\"9p\",\"target\":\"/mnt\"}]"),
            "mounts[0]: the source of a 9p mount");
    refuses(with("\"mounts\":[{\"type\":\"virtiofs\",\"target\":\"/mnt\"}]"),
            "its tag: it is missing");
    refuses(with("\"mounts\":[{\"type\":\"tmpfs\",\"source\":\"x\",\"target\":\"/mnt\"}]"),
            "has no source");
    refuses(with("\"mounts\":[{\"type\":\"bind\",\"source\":\"x\",\"target\":\"/mnt\"}]"),
            "is not absolute");
    refuses(with("\"mounts\":[{\"type\":\"ext4\",\"source\":\"/etc/x\",\"target\":\"/mnt\"}]"),
            "below /dev");
    refuses(with("\"mounts\":[{\"type\":\"erofs\",\"source\":\"/dev/../x\",\"target\":\"/mnt\"}]"),
            "has . or ..");
    refuses(with("\"mounts\":[{\"type\":\"drvfs\",\"source\":\"C:\\\\x\",\"target\":\"/mnt\"}]"),
            "in WSL only");
    refuses(with("\"mounts\":[{\"type\":\"tmpfs\",\"target\":\"/mnt/"
                 "a\"},{\"type\":\"tmpfs\",\"target\":\"/mnt/b\"},"
                 "{\"type\":\"tmpfs\",\"target\":\"/mnt/a\"}]"),
            "mounts[2]: the target \"/mnt/a\" stands there twice");
}

static void servers(void **state)
{
    (void)state;
    refuses(with_server("\"argv\":[]"), "server.argv: the program's name is missing");
    refuses(with_server("\"argv\":[\"\"]"), "server.argv: the program's name is empty");
    refuses(with_server("\"argv\":[\"a\\u0000b\"]"), "server.argv[0]: a string with U+0000");
    refuses(with_server("\"argv\":[\"x\"],\"env\":{\"\":\"v\"}"), "no name of a variable");
    refuses(with_server("\"argv\":[\"x\"],\"env\":{\"A=B\":\"v\"}"),
            "\"A=B\" is no name of a variable");
    refuses(with_server("\"argv\":[\"x\"],\"cwd\":\"app\""),
            "server.cwd: the path \"app\" is not absolute");
    refuses(with_server("\"argv\":[\"x\"],\"cwd\":\"/a/../b\""), "server.cwd");
    refuses(with_server("\"argv\":[\"x\"],\"port\":65536"), "server.port: 0 to 65535");
    refuses(with_server("\"argv\":[\"x\"],\"port\":53"), "server.port: 53 is taken");
    refuses(with_server("\"argv\":[\"x\"],\"stdio\":\"pty\""),
            "server.stdio: one of log, pipe, tty is wanted");
    refuses(with_server("\"argv\":[\"x\"],\"ready_timeout_ms\":0"),
            "server.ready_timeout_ms: 1 to 3600000");
    refuses(with_server("\"argv\":[\"x\"],\"rows\":65536"), "server.rows: 0 to 65535");
    accepts(with_server("\"argv\":[\"x\"],\"port\":null"));
    accepts(with_server("\"argv\":[\"x\"],\"port\":8788")); /* no relay: the port is free */
}

static void relays(void **state)
{
    (void)state;
    refuses(with("\"relay\":{\"transport\":[],\"token\":\"" HEX "\"}"),
            "relay.transport: not one address");
    refuses(with("\"relay\":{\"transport\":[\"x\"],\"token\":\"" HEX "\"}"),
            "relay.transport[0]: ");
    refuses(with("\"relay\":{\"transport\":[\"tcp:127.0.0.1:1\"],\"token\":\"" HEX "\"}"),
            "over vsock only");
    refuses(with("\"relay\":{\"transport\":[\"vsock:2:1\",\"vsock:2:2\",\"vsock:2:3\",\"vsock:2:"
                 "4\",\"vsock:2:5\"],"
                 "\"token\":\"" HEX "\"}"),
            "relay.transport: more than 4 entries");
    refuses(with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"abc\"}"),
            "relay.token: 64 lower-case");
    refuses(with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "0\"}"),
            "relay.token: 64 lower-case");
    refuses(
        with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\",\"pin\":\"" HEX "\"}"),
        "relay.pin: \"sha256:\" and 64");
    refuses(with("\"relay\":{\"listen\":53,\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\"}"),
            "relay.listen: port 53 answers DNS");
    refuses(with("\"way_in\":{\"listen\":\"tcp:127.0.0.1:0\",\"secret\":\"" HEX "\"}"),
            "over a vsock port only");
    refuses(with("\"way_in\":{\"listen\":\"vsock:0\",\"secret\":\"" HEX "\"}"),
            "over a vsock port only");
    refuses(with("\"way_in\":{\"listen\":\"vsock:4096\",\"secret\":\"\"}"),
            "way_in.secret: 64 lower-case");
    refuses("{\"protocol\":1,\"id\":\"a\",\"server\":{\"argv\":[\"x\"],\"port\":8788},"
            "\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\"}}",
            "server.port: 8788 is taken");
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
    refuses(with(members), "egress[0]: 65 bytes");
    snprintf(members, sizeof(members), "%s,\"egress\":[\"a\",\"a\"]", relay);
    refuses(with(members), "egress[1]: \"a\" stands there twice");
    snprintf(members, sizeof(members), "%s,\"egress\":[\"%064d\",\"a.b_c-d\"]", relay, 0);
    accepts(with(members));
    accepts(with("\"egress\":[]"));
    refuses(with("\"egress\":[\"gateway\"]"), "egress: there is none without \"relay\"");
    refuses(with("\"auto_accept\":{\"directories\":{\"a\":true}}"),
            "auto_accept.directories: the path \"a\"");
}

static void limits(void **state)
{
    (void)state;
    refuses(with("\"limits\":{\"pids\":0}"), "limits.pids: 1 to");
    refuses(with("\"limits\":{\"memory_mib\":-1}"), "limits.memory_mib: 0 to");
    refuses(with("\"limits\":{\"nofile\":63}"), "limits.nofile: 64 to");
}

/* In WSL there is TCP and no vsock, the broker's key is pinned, and the host's folders come in other ways. */
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
            "\"pin\" is needed");
    refuses(with("\"relay\":{\"transport\":[\"vsock:2:1\"],\"token\":\"" HEX "\"}"),
            "over tcp only");
    refuses(with("\"relay\":{\"transport\":[\"unix:/a\"],\"token\":\"" HEX "\"}"), "over tcp only");
    refuses(with("\"way_in\":{\"listen\":\"tcp:0.0.0.0:0\",\"secret\":\"" HEX "\"}"),
            "tcp:127.0.0.1 or tcp:[::1] only");
    refuses(with("\"way_in\":{\"listen\":\"vsock:1\",\"secret\":\"" HEX "\"}"),
            "tcp:127.0.0.1 or tcp:[::1] only");
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
