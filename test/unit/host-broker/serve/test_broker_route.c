/* Routing by name, and the order of refusals. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/io.h"
#include "host-broker/serve/route_internal.h"

static struct broker broker;
static char token_path[] = "/tmp/test-route-XXXXXX";

static int open_broker(void **state)
{
    static const char rules[] = "{\"npm\":\"https://registry.example/base\"}";
    static char *arguments[] = {"codev-broker",
                                "--listen",
                                "unix:/x",
                                "--gateway-url",
                                "https://llm.example",
                                "--gateway-token-file",
                                token_path,
                                "--gateway-allow",
                                "POST /v1/messages"};
    struct failure why;
    (void)state;
    int fd = mkstemp(token_path);
    if (fd < 0 || write(fd, "token", 5) != 5)
        return -1;
    close(fd);
    line_sink_init(&broker.log.events, -1);
    broker.logged_in = true;
    if (options_parse(&broker.options, 9, arguments, &why) != OPTIONS_RUN)
        return -1;
    if (rules_parse(&broker.rules, "rules", rules, sizeof(rules) - 1, &why) < 0)
        return -1;
    return credential_open(&broker.credential, token_path, &why);
}

static int close_broker(void **state)
{
    (void)state;
    credential_close(&broker.credential);
    return unlink(token_path);
}

static struct request_head head_of(const char *method, const char *target)
{
    return (struct request_head){.method = slice_of(method), .target = slice_of(target)};
}

/* -1 for a request that is routed to an upstream, or the error. */
static int outcome(const char *method, const char *target)
{
    struct request_head head = head_of(method, target);
    struct refusal refusal;
    struct route route;
    return route_find(&route, &broker, &head, &refusal) == 0 ? -1 : (int)refusal.error;
}

static void names_are_found(void **state)
{
    (void)state;
    struct request_head head = head_of("GET", "/npm/left-pad?x=1");
    struct refusal refusal;
    struct route route;
    assert_int_equal(route_find(&route, &broker, &head, &refusal), 0);
    assert_int_equal(route.kind, ROUTE_NAMED);
    assert_string_equal(route.name, "npm");
    assert_string_equal(route.url->host, "registry.example");
    assert_true(slice_equal(route.target.rest, SLICE_LITERAL("/left-pad")));
    head = head_of("POST", "/gateway/v1/messages");
    assert_int_equal(route_find(&route, &broker, &head, &refusal), 0);
    assert_int_equal(route.kind, ROUTE_GATEWAY);
    assert_null(route.rule);
    assert_string_equal(route.url->host, "llm.example");
}

static void refusals_have_their_types(void **state)
{
    (void)state;
    assert_int_equal(outcome("TRACE", "/npm/x"), BROKER_ERROR_METHOD);
    assert_int_equal(outcome("CONNECT", "registry.example:443"), BROKER_ERROR_METHOD);
    assert_int_equal(outcome("GET", "http://registry.example/"), BROKER_ERROR_ABSOLUTE_TARGET);
    assert_int_equal(outcome("GET", "/npm/../x"), BROKER_ERROR_BAD_REQUEST);
    assert_int_equal(outcome("GET", "/nope/x"), BROKER_ERROR_UNKNOWN_NAME);
    assert_int_equal(outcome("GET", "/gateway/v1/messages"), BROKER_ERROR_NOT_ALLOWED);
    assert_int_equal(outcome("POST", "/gateway/v1/keys"), BROKER_ERROR_NOT_ALLOWED);
    assert_int_equal(outcome("GET", "/_undeclared/files.example/x"), BROKER_ERROR_NO_RULE);
}

static void the_undeclared_host_is_named(void **state)
{
    (void)state;
    struct request_head head = head_of("GET", "/_undeclared/files.example/x");
    struct refusal refusal;
    struct route route;
    assert_int_equal(route_find(&route, &broker, &head, &refusal), -EACCES);
    assert_string_equal(refusal.message, "no rule for https://files.example: add one");
}

static void upgrades_are_refused_on_known_routes(void **state)
{
    (void)state;
    struct request_head head = head_of("GET", "/npm/x");
    struct refusal refusal;
    struct route route;
    head.upgrade = true;
    assert_int_equal(route_find(&route, &broker, &head, &refusal), -EACCES);
    assert_int_equal(refusal.error, BROKER_ERROR_UPGRADE);
    assert_string_equal(refusal.rule, "npm");
}

static void without_a_login_every_route_is_refused(void **state)
{
    (void)state;
    assert_int_equal(truncate(token_path, 0), 0);
    assert_int_equal(outcome("GET", "/npm/x"), BROKER_ERROR_NO_LOGIN);
    assert_int_equal(outcome("POST", "/gateway/v1/messages"), BROKER_ERROR_NO_LOGIN);
    assert_int_equal(outcome("GET", "/nope/x"), BROKER_ERROR_UNKNOWN_NAME);
    assert_int_equal(io_write_file(AT_FDCWD, token_path, O_TRUNC, 0600, "back"), 0);
    assert_int_equal(outcome("GET", "/npm/x"), -1);
    assert_string_equal(broker.credential.token, "back");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(refusals_have_their_types),
        cmocka_unit_test(the_undeclared_host_is_named),
        cmocka_unit_test(upgrades_are_refused_on_known_routes),
        cmocka_unit_test(without_a_login_every_route_is_refused),
    };
    return cmocka_run_group_tests(tests, open_broker, close_broker);
}
