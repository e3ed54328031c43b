/* The command line: defaults, every option, and the messages for wrong usage. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-broker/config/options.h"

#define ARGUMENTS_MAX 40

static struct broker_options options;

/* Parses the required options and then the given ones. */
static int parse(const char *const *more, struct failure *why)
{
    char *arguments[ARGUMENTS_MAX + 1] = {
        "codev-broker",         "--listen", "unix:/run/x.sock", "--gateway-url=https://llm.example",
        "--gateway-token-file", "/t",
    };
    int count = 6;
    for (; more && *more; more++)
        arguments[count++] = (char *)*more;
    return options_parse(&options, count, arguments, why);
}

#define PARSE(why, ...) parse((const char *const[]){__VA_ARGS__, NULL}, why)

static void defaults(void **state)
{
    (void)state;
    assert_int_equal(parse(NULL, NULL), OPTIONS_RUN);
    assert_int_equal(options.listener_count, 1);
    assert_int_equal(options.listeners[0].kind, ENDPOINT_UNIX);
    assert_string_equal(options.listeners[0].path, "/run/x.sock");
    assert_string_equal(options.gateway.host, "llm.example");
    assert_string_equal(options.gateway_token_file, "/t");
    assert_int_equal(options.gateway_auth, GATEWAY_AUTH_BEARER);
    assert_true(slice_equal(options.gateway_header, SLICE_LITERAL("Authorization")));
    assert_string_equal(options.guest_url, "http://127.0.0.1:8788");
    assert_int_equal(options.proxy.mode, PROXY_MODE_SYSTEM);
    assert_false(options.proxy.pac_mandatory);
    assert_int_equal(options.max_requests, 256);
    assert_int_equal(options.max_connections, 1024);
    assert_int_equal(options.idle_timeout_seconds, 1800);
    assert_null(options.log);
    assert_false(options.check);
    assert_true(options_gateway_is_open(&options));
}

static void every_option_is_stored(void **state)
{
    (void)state;
    struct failure why = {""};
    int result =
        PARSE(&why, "--listen=vsock:50117", "--peer-cid", "7", "--gateway-auth", "header:X-Key",
              "--gateway-allow", "POST /v1/messages", "--gateway-allow", "GET /v1/models",
              "--rules", "/r", "--guest-url", "http://127.0.0.1:9/", "--ca-file", "/a", "--ca-file",
              "/b", "--proxy", "http://p:3128", "--pac-mandatory", "--proxy-auth-host", "a.corp",
              "--proxy-auth-host", "b.corp", "--max-requests", "1", "--max-connections=2",
              "--idle-timeout", "2h", "--log", "/l", "--check");
    if (result != OPTIONS_RUN)
        fail_msg("%s", why.text);
    assert_int_equal(options.listener_count, 2);
    assert_int_equal(options.listeners[1].port, 50117);
    assert_int_equal(options.peer_cid, 7);
    assert_int_equal(options.gateway_auth, GATEWAY_AUTH_HEADER);
    assert_true(slice_equal(options.gateway_header, SLICE_LITERAL("X-Key")));
    assert_int_equal(options.gateway_allow_count, 2);
    assert_string_equal(options.rules_file, "/r");
    assert_string_equal(options.guest_url, "http://127.0.0.1:9");
    assert_int_equal(options.ca_file_count, 2);
    assert_string_equal(options.ca_files[1], "/b");
    assert_int_equal(options.proxy.mode, PROXY_MODE_URL);
    assert_string_equal(options.proxy.list.proxies[0].host, "p");
    assert_true(options.proxy.pac_mandatory);
    assert_int_equal(options.proxy.auth_host_count, 2);
    assert_string_equal(options.proxy.auth_hosts[1], "b.corp");
    assert_int_equal(options.max_requests, 1);
    assert_int_equal(options.max_connections, 2);
    assert_int_equal(options.idle_timeout_seconds, 7200);
    assert_string_equal(options.log, "/l");
    assert_true(options.check);
    assert_false(options_gateway_is_open(&options));
}

static const struct {
    const char *arguments[3];
    const char *reason;
} wrong_usages[] = {
    {{"--nonsense"}, "unknown argument '--nonsense'"},
    {{"stray"}, "unknown argument 'stray'"},
    {{"-h"}, "unknown argument '-h'"},
    {{"--"}, "unknown argument"},
    {{"--log"}, "--log needs a value"},
    {{"--check=yes"}, "--check takes no value"},
    {{"--gateway-url", "https://x"}, "--gateway-url is given twice"},
    {{"--listen", "tcp:localhost:1"}, "--listen: "},
    {{"--listen", "tcp:gateway:1"}, "--listen: "},
    {{"--listen", "unix:relative"}, "--listen: "},
    {{"--listen", "vsock:50117"}, "--listen vsock needs --peer-cid"},
    {{"--peer-cid", "0"}, "--peer-cid: '0' is not a number from 1"},
    {{"--peer-cid", "4294967295"}, "--peer-cid: "},
    {{"--gateway-auth", "basic"}, "is not bearer, x-api-key or header:NAME"},
    {{"--gateway-auth", "header:"}, "is not a header field"},
    {{"--gateway-auth", "header:Host"}, "is not a header field"},
    {{"--gateway-auth", "header:a b"}, "is not a header field"},
    {{"--gateway-allow", "POST"}, "is not 'METHOD /prefix'"},
    {{"--gateway-allow", "POST v1"}, "the prefix is not a path"},
    {{"--gateway-allow", "POST /v1/../x"}, "the prefix is not a path"},
    {{"--gateway-allow", " /v1"}, "does not begin with a method"},
    {{"--rules", ""}, "--rules: the path is empty"},
    {{"--guest-url", "http://h/x"}, "--guest-url: a path is not allowed"},
    {{"--guest-url", "x"}, "--guest-url: "},
    {{"--proxy", "pac+ftp://h/p.pac"}, "does not begin with http://, https:// or file:///"},
    {{"--proxy", "pac+file://"}, "does not begin with http://, https:// or file:///"},
    {{"--proxy", "ftp://user:secret@h"}, "scheme must be http"},
    {{"--proxy", "http://"}, "the host is missing"},
    {{"--proxy", "direct://"}, "use none"},
    {{"--proxy", "http://h/path"}, "has a path"},
    {{"--proxy-auth-host", "h:1"}, "without a port"},
    {{"--proxy-auth-host", "a b"}, "--proxy-auth-host: "},
    {{"--max-requests", "0"}, "--max-requests: '0' is not a number from 1 to 65536"},
    {{"--max-requests", "99999999999999999999"}, "is not a number"},
    {{"--max-connections", "1e3"}, "is not a number"},
    {{"--max-connections", "-1"}, "is not a number"},
    {{"--max-connections", " 1"}, "is not a number"},
    {{"--idle-timeout", ""}, "is not a number"},
    {{"--idle-timeout", "m"}, "is not a number"},
    {{"--idle-timeout", "0m"}, "is not a number"},
    {{"--idle-timeout", "30d"}, "is not a number"},
    {{"--idle-timeout", "30mm"}, "is not a number"},
    {{"--idle-timeout", "169h"}, "is not a number"},
};

static void wrong_usage_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wrong_usages) / sizeof(wrong_usages[0]); i++) {
        struct failure why = {""};
        int result = parse(wrong_usages[i].arguments, &why);
        if (result != -EINVAL || !strstr(why.text, wrong_usages[i].reason) ||
            strstr(why.text, "secret"))
            fail_msg("%s %s: %d %s", wrong_usages[i].arguments[0], wrong_usages[i].arguments[1],
                     result, why.text);
    }
    struct failure why = {""};
    assert_int_equal(PARSE(&why, "--rules", "/r", "--app-data", "/d"), -EINVAL);
    assert_non_null(strstr(why.text, "exclude each other"));
}

static void required_options_are_demanded(void **state)
{
    (void)state;
    char *arguments[] = {"codev-broker", "--listen=unix:/x", "--gateway-url=https://h",
                         "--gateway-token-file=/t", NULL};
    static const char *const names[] = {"--listen", "--gateway-url", "--gateway-token-file"};
    for (int left_out = 1; left_out <= 3; left_out++) {
        char *fewer[4];
        int count = 0;
        struct failure why = {""};
        for (int i = 0; i < 4; i++)
            if (i != left_out)
                fewer[count++] = arguments[i];
        assert_int_equal(options_parse(&options, count, fewer, &why), -EINVAL);
        assert_int_equal(strncmp(why.text, names[left_out - 1], strlen(names[left_out - 1])), 0);
        assert_non_null(strstr(why.text, "is missing"));
    }
    char *check[] = {"codev-broker", "--check", arguments[2], arguments[3]};
    assert_int_equal(options_parse(&options, 4, check, NULL), OPTIONS_RUN);
}

static void rules_can_be_checked_without_a_login(void **state)
{
    (void)state;
    struct failure why = {""};
    char *alone[] = {"codev-broker", "--check", "--rules=/r", "--gateway-url=https://h"};
    assert_int_equal(options_parse(&options, 3, alone, NULL), OPTIONS_RUN);
    assert_null(options.gateway_token_file);
    assert_int_equal(options_parse(&options, 4, alone, &why), -EINVAL); /* a URL without a token */
    assert_non_null(strstr(why.text, "--gateway-token-file is missing"));
    assert_int_equal(options_parse(&options, 2, alone, &why), -EINVAL);
    alone[1] = "--listen=unix:/x"; /* without --check a login is required */
    assert_int_equal(options_parse(&options, 3, alone, &why), -EINVAL);
    assert_non_null(strstr(why.text, "--gateway-url is missing"));
}

static void the_gateway_must_be_safe(void **state)
{
    (void)state;
    static const struct {
        char *url;
        int result;
    } cases[] = {{"http://llm.example", -EINVAL},
                 {"http://127.0.0.1:1/v1", OPTIONS_RUN},
                 {"https://u:secret@llm.example", -EINVAL}};
    for (size_t i = 0; i < 3; i++) {
        struct failure why = {""};
        char *arguments[] = {"codev-broker", "--listen",      "unix:/s",   "--gateway-token-file",
                             "/t",           "--gateway-url", cases[i].url};
        assert_int_equal(options_parse(&options, 7, arguments, &why), cases[i].result);
        assert_null(strstr(why.text, "secret"));
        if (cases[i].result == OPTIONS_RUN)
            assert_true(options.gateway_v1_removed);
    }
}

static void help_and_version_precede_errors(void **state)
{
    (void)state;
    char *help[] = {"codev-broker", "--help", "--nonsense"};
    char *version[] = {"codev-broker", "--version"};
    assert_int_equal(options_parse(&options, 3, help, NULL), OPTIONS_HELP);
    assert_int_equal(options_parse(&options, 2, version, NULL), OPTIONS_VERSION);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    options_print_help(stream);
    fclose(stream);
    assert_non_null(strstr(text, "--gateway-allow"));
    free(text);
}

static void gateway_allow_limits_requests(void **state)
{
    (void)state;
    static const struct {
        const char *method, *rest;
        bool allowed;
    } cases[] = {
        {"POST", "/v1/messages", true},
        {"POST", "/v1/messages/count_tokens", true},
        {"POST", "/v1/messagesx", false},
        {"POST", "/v1", false},
        {"post", "/v1/messages", false},
        {"GET", "/v1/messages", false},
        {"GET", "/v1/models", true},
        {"GET", "/v1/models/", true},
        {"GET", "/v1/models/x", true},
        {"GET", "/v1/modelsx", false},
        {"DELETE", "/free/x", true},
        {"GET", "/free", true},
        {"GET", "", false},
        {"POST", "//v1/messages", false},
        {"POST", "/v1/%6dessages", false},
    };
    assert_int_equal(PARSE(NULL, "--gateway-allow=POST /v1/messages",
                           "--gateway-allow=GET /v1/models/", "--gateway-allow=* /free"),
                     OPTIONS_RUN);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (options_gateway_allows(&options, slice_of(cases[i].method), slice_of(cases[i].rest)) !=
            cases[i].allowed)
            fail_msg("%s %s", cases[i].method, cases[i].rest);
    assert_int_equal(parse(NULL, NULL), OPTIONS_RUN);
    assert_true(options_gateway_allows(&options, SLICE_LITERAL("GET"), SLICE_LITERAL("/x")));
}

static void the_path_of_the_rules_file(void **state)
{
    (void)state;
    char path[64];
    bool may_be_absent;
    assert_int_equal(parse(NULL, NULL), OPTIONS_RUN);
    assert_int_equal(options_rules_path(&options, path, sizeof(path), &may_be_absent), 0);
    assert_string_equal(path, "");
    assert_true(may_be_absent);
    assert_int_equal(PARSE(NULL, "--rules", "/etc/r.json"), OPTIONS_RUN);
    assert_int_equal(options_rules_path(&options, path, sizeof(path), &may_be_absent), 0);
    assert_string_equal(path, "/etc/r.json");
    assert_false(may_be_absent);
    assert_int_equal(PARSE(NULL, "--app-data", "/data"), OPTIONS_RUN);
    assert_int_equal(options_rules_path(&options, path, sizeof(path), &may_be_absent), 0);
    assert_string_equal(path, "/data/sandbox-egress.json");
    assert_true(may_be_absent);
    assert_int_equal(options_rules_path(&options, path, 25, &may_be_absent), -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_option_is_stored),
        cmocka_unit_test(wrong_usage_is_named),
        cmocka_unit_test(required_options_are_demanded),
        cmocka_unit_test(rules_can_be_checked_without_a_login),
        cmocka_unit_test(the_gateway_must_be_safe),
        cmocka_unit_test(help_and_version_precede_errors),
        cmocka_unit_test(gateway_allow_limits_requests),
        cmocka_unit_test(the_path_of_the_rules_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
