/* Unit tests of init/server/environment.c. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "init/server/environment.h"

static struct boot_config config;
static struct permissions permissions;
static const struct account account = {
    .name = "codev", .home = "/home/codev", .shell = "/bin/sh", .uid = 1000, .gid = 1000};
static char **environment;

static int start(void **state)
{
    (void)state;
    memset(&config, 0, sizeof(config));
    memset(&permissions, 0, sizeof(permissions));
    permissions.auto_accept = true;
    return 0;
}

static void build(void)
{
    struct failure why;

    assert_int_equal(environment_build(&config, &account, &permissions, &environment, &why), 0);
}

/* The value, NULL when absent; a name that stands twice fails the test. */
static const char *value(const char *name)
{
    const char *found = NULL;
    size_t length = strlen(name);

    for (char **entry = environment; *entry; entry++) {
        if (strncmp(*entry, name, length) != 0 || (*entry)[length] != '=')
            continue;
        assert_null(found);
        found = *entry + length + 1;
    }
    return found;
}

static void account_and_sandbox(void **state)
{
    (void)state;
    build();
    assert_string_equal(value("HOME"), "/home/codev");
    assert_string_equal(value("USER"), "codev");
    assert_string_equal(value("LOGNAME"), "codev");
    assert_string_equal(value("SHELL"), "/bin/sh");
    assert_string_equal(value("LANG"), "C.UTF-8");
    assert_string_equal(value("CODEV_SANDBOX"), "1");
    assert_string_equal(value("CODEV_AUTO_ACCEPT"), "1");
    assert_non_null(strstr(value("PATH"), "/usr/bin"));
    assert_string_equal(value("TERM"), "dumb");
    assert_null(value("ANTHROPIC_BASE_URL"));
    assert_null(value("CODEV_PERMISSION"));
    config.server.stdio = STDIO_TTY;
    build();
    assert_string_equal(value("TERM"), "xterm-256color");
}

static void gateway_and_rules(void **state)
{
    (void)state;
    config.relay.present = true;
    config.relay.listen = 8788;
    config.egress[0] = "gateway";
    config.egress[1] = "npm";
    config.egress_count = 2;
    build();
    assert_string_equal(value("ANTHROPIC_BASE_URL"), "http://127.0.0.1:8788/gateway");
    assert_string_equal(value("OPENAI_BASE_URL"), "http://127.0.0.1:8788/gateway/v1");
    assert_string_equal(value("ANTHROPIC_API_KEY"), "codev-sandbox");
    assert_string_equal(value("OPENAI_API_KEY"), "codev-sandbox");
    assert_string_equal(value("NPM_CONFIG_REGISTRY"), "http://127.0.0.1:8788/npm/");
    assert_string_equal(value("NPM_CONFIG_OMIT_LOCKFILE_REGISTRY_RESOLVED"), "true");
    assert_string_equal(value("COREPACK_NPM_REGISTRY"), "http://127.0.0.1:8788/npm");
    assert_string_equal(value("COREPACK_ENABLE_DOWNLOAD_PROMPT"), "0");
    assert_string_equal(value("YARN_NPM_REGISTRY_SERVER"), "http://127.0.0.1:8788/npm");
    assert_string_equal(value("YARN_UNSAFE_HTTP_WHITELIST"), "127.0.0.1");
    assert_null(value("PIP_INDEX_URL"));
    assert_null(value("GOSUMDB"));
    assert_null(value("APT_CONFIG"));
    config.egress[0] = "pypi";
    config.egress[1] = "goproxy";
    config.egress[2] = "crates";
    config.egress[3] = "debian";
    config.egress[4] = "other";
    config.egress_count = 5;
    config.relay.listen = 9000;
    build();
    assert_null(value("ANTHROPIC_BASE_URL"));
    assert_string_equal(value("PIP_INDEX_URL"), "http://127.0.0.1:9000/pypi/simple/");
    assert_string_equal(value("UV_DEFAULT_INDEX"), "http://127.0.0.1:9000/pypi/simple/");
    assert_string_equal(value("PIP_DISABLE_PIP_VERSION_CHECK"), "1");
    assert_string_equal(value("GOPROXY"), "http://127.0.0.1:9000/goproxy");
    assert_string_equal(value("GOSUMDB"), "sum.golang.org http://127.0.0.1:9000/sumdb");
    assert_string_equal(value("APT_CONFIG"), "/run/codev/apt/apt.conf");
    assert_string_equal(value("CARGO_REGISTRIES_CODEV_INDEX"),
                        "sparse+http://127.0.0.1:9000/crates/");
}

/* Names without a relay lead nowhere, so nothing is said about them. */
static void no_relay(void **state)
{
    (void)state;
    config.egress[0] = "gateway";
    config.egress_count = 1;
    build();
    assert_null(value("ANTHROPIC_BASE_URL"));
    assert_null(value("ANTHROPIC_API_KEY"));
}

static void configured_wins(void **state)
{
    static char *configured[] = {"PATH=/x",
                                 "LANG=de_DE.UTF-8",
                                 "EMPTY=",
                                 "CODEV_SANDBOX=0",
                                 "CODEV_AUTO_ACCEPT=1",
                                 "CODEV_PERMISSION={}",
                                 "PATHS=/y",
                                 "NPM_CONFIG_REGISTRY=https://npm.example/",
                                 "A=b=c",
                                 NULL};

    (void)state;
    config.server.env = configured;
    config.relay.present = true;
    config.egress[0] = "npm";
    config.egress_count = 1;
    permissions.auto_accept = false;
    strcpy(permissions.permission, "{\"bash\":\"ask\"}");
    build();
    assert_string_equal(value("PATH"), "/x");
    assert_string_equal(value("PATHS"), "/y");
    assert_string_equal(value("NPM_CONFIG_REGISTRY"), "https://npm.example/");
    assert_string_equal(value("LANG"), "de_DE.UTF-8");
    assert_string_equal(value("EMPTY"), "");
    assert_string_equal(value("A"), "b=c");
    assert_string_equal(value("CODEV_SANDBOX"), "1");
    assert_null(value("CODEV_AUTO_ACCEPT"));
    assert_string_equal(value("CODEV_PERMISSION"), "{\"bash\":\"ask\"}");
}

static void full(void **state)
{
    static char names[BOOT_ENVIRONMENT_MAX][32];
    static char *configured[BOOT_ENVIRONMENT_MAX + 1];

    (void)state;
    for (int i = 0; i < BOOT_ENVIRONMENT_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "N%d=%d", i, i);
        configured[i] = names[i];
    }
    config.server.env = configured;
    build();
    assert_string_equal(value("N0"), "0");
    assert_string_equal(value("N1023"), "1023");
    assert_string_equal(value("CODEV_SANDBOX"), "1");
}

static void longest_permission(void **state)
{
    (void)state;
    memset(permissions.permission, 'x', sizeof(permissions.permission) - 1);
    build();
    assert_int_equal(strlen(value("CODEV_PERMISSION")), sizeof(permissions.permission) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(account_and_sandbox, start),
        cmocka_unit_test_setup(gateway_and_rules, start),
        cmocka_unit_test_setup(no_relay, start),
        cmocka_unit_test_setup(configured_wins, start),
        cmocka_unit_test_setup(full, start),
        cmocka_unit_test_setup(longest_permission, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
