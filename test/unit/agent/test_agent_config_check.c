/* Which records are accepted, and which may replace the running one. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "agent/config_check.h"

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct relay_config good(void)
{
    struct relay_config config = {
        .magic = RELAY_CONFIG_MAGIC, .size = sizeof(config), .forward_count = 2};
    config.forwards[0] =
        (struct relay_forward){.listen_fd = 3, .role = RELAY_TO_BROKER, .dial_count = 1};
    config.forwards[0].dials[0] = (struct endpoint){.kind = ENDPOINT_VSOCK, .cid = 2, .port = 5000};
    strcpy(config.forwards[0].secret, TOKEN);
    config.forwards[1] =
        (struct relay_forward){.listen_fd = 4, .role = RELAY_TO_SERVER, .dial_count = 1};
    config.forwards[1].dials[0] =
        (struct endpoint){.kind = ENDPOINT_TCP4, .port = 80, .address = {127, 0, 0, 1}};
    strcpy(config.forwards[1].secret, TOKEN);
    return config;
}

static void refused(const struct relay_config *config, const char *reason)
{
    struct failure why = {{0}};
    assert_int_equal(config_check(config, &why), -EINVAL);
    if (!strstr(why.text, reason))
        fail_msg("'%s' does not say '%s'", why.text, reason);
}

static void accepts_what_init_sends(void **state)
{
    (void)state;
    struct failure why;
    struct relay_config config = good();
    assert_int_equal(config_check(&config, &why), 0);
    config.forward_count = 0;
    assert_int_equal(config_check(&config, &why), 0);
}

#define REFUSES(change, reason)                                                                    \
    do {                                                                                           \
        struct relay_config config = good();                                                       \
        struct relay_forward *broker = &config.forwards[0], *server = &config.forwards[1];         \
        (void)broker, (void)server;                                                                \
        change;                                                                                    \
        refused(&config, reason);                                                                  \
    } while (0)

static void refuses_what_it_cannot_serve(void **state)
{
    (void)state;
    REFUSES(config.magic++, "not one of this build");
    REFUSES(config.size--, "not one of this build");
    REFUSES(config.forward_count = RELAY_FORWARDS_MAX + 1, "more than");
    REFUSES(config.dns_count = RELAY_DNS_MAX + 1, "more than");
    REFUSES(server->role = RELAY_ROLE_COUNT, "forward 1: unknown role 4");
    REFUSES(broker->listen_fd = -1, "forward 0, to the broker: no listener");
    REFUSES(broker->dial_count = 0, "0 addresses");
    REFUSES(broker->dial_count = RELAY_DIALS_MAX + 1, "5 addresses");
    REFUSES(broker->dials[0].kind = ENDPOINT_KIND_COUNT, "unknown kind");
    REFUSES(strcpy(broker->pin, TOKEN), "no broker is dialled over TCP");
    REFUSES(strcpy(server->pin, TOKEN), "no broker is dialled over TCP");
    REFUSES(broker->dials[0].kind = ENDPOINT_TCP4, "without a pinned key");
    REFUSES(broker->dials[0].kind = ENDPOINT_TCP6, "without a pinned key");
    REFUSES((config.route_fd = 7, broker->dials[0].kind = ENDPOINT_TCP_GATEWAY),
            "without a pinned key");
    REFUSES(server->dials[0].kind = ENDPOINT_TCP_GATEWAY, "only the broker");
    REFUSES(server->secret[0] = '\0', "without a secret");
    REFUSES(server->secret[63] = '\0', "hex");
    REFUSES(memset(server->secret, 'a', sizeof(server->secret)), "without a final NUL");
    REFUSES((server->role = RELAY_TO_RELAY, server->dials[0].kind = ENDPOINT_UNIX),
            "neither sends nor demands");
    REFUSES((server->role = RELAY_TO_AGENT, server->dials[0].kind = ENDPOINT_UNIX,
             server->secret[0] = 0),
            "without a secret");
}

static struct relay_config over_tcp(void)
{
    struct relay_config config = good();
    struct relay_forward *broker = &config.forwards[0];
    config.route_fd = 9;
    broker->dial_count = 2;
    broker->dials[0] = (struct endpoint){.kind = ENDPOINT_TCP_GATEWAY, .port = 5000};
    broker->dials[1] =
        (struct endpoint){.kind = ENDPOINT_TCP4, .port = 5000, .address = {127, 0, 0, 1}};
    strcpy(broker->pin, TOKEN);
    return config;
}

static void a_broker_over_tcp_needs_its_pin(void **state)
{
    (void)state;
    struct failure why;
    struct relay_config config = over_tcp();
    assert_int_equal(config_check(&config, &why), 0);
    config.route_fd = 2;
    refused(&config, "table of routes");
    config = over_tcp();
    config.forwards[0].pin[0] = '\0';
    refused(&config, "without a pinned key");
    config.forwards[0].dials[0].kind = ENDPOINT_VSOCK; /* one of two is enough to be refused */
    refused(&config, "without a pinned key");
    config = over_tcp();
    config.forwards[0].pin[5] = 'X';
    refused(&config, "hex");
    memset(config.forwards[0].pin, 'a', sizeof(config.forwards[0].pin));
    refused(&config, "without a final NUL");
}

static void the_agents_of_a_pair_meet_at_unix_sockets_alone(void **state)
{
    (void)state;
    struct failure why;
    struct relay_config config = good();
    config.forwards[0].role = RELAY_TO_RELAY;
    config.forwards[0].secret[0] = '\0';
    config.forwards[0].dials[0] = (struct endpoint){.kind = ENDPOINT_UNIX, .path = "/out"};
    config.forwards[1].role = RELAY_TO_AGENT;
    config.forwards[1].dials[0] = (struct endpoint){.kind = ENDPOINT_UNIX, .path = "/in"};
    assert_int_equal(config_check(&config, &why), 0);
    config.forwards[1].dials[0].kind = ENDPOINT_TCP4;
    refused(&config, "through a Unix socket");
    config.forwards[1].dials[0].kind = ENDPOINT_UNIX;
    config.forwards[0].dials[0].kind = ENDPOINT_VSOCK;
    refused(&config, "through a Unix socket");
}

static void replaces_addresses_and_secrets(void **state)
{
    (void)state;
    struct failure why;
    struct relay_config config = good(), next = good();
    next.forwards[0].dials[0].port = 6000;
    next.forwards[0].secret[0] = 'f';
    assert_int_equal(config_replace(&config, &next, &why), 0);
    assert_memory_equal(&config, &next, sizeof(config));
}

static void replaces_nothing_by_another_table(void **state)
{
    (void)state;
    struct failure why;
    struct relay_config config = good(), before = good(), next = good();
    next.forwards[1].listen_fd = 9;
    assert_int_equal(config_replace(&config, &next, &why), -EINVAL);
    next = good();
    next.forward_count = 1;
    assert_int_equal(config_replace(&config, &next, &why), -EINVAL);
    next = good();
    next.dns_count = 1;
    assert_int_equal(config_replace(&config, &next, &why), -EINVAL);
    next = good();
    next.route_fd = 8;
    assert_int_equal(config_replace(&config, &next, &why), -EINVAL);
    next = good();
    next.magic = 0;
    assert_int_equal(config_replace(&config, &next, &why), -EINVAL);
    assert_memory_equal(&config, &before, sizeof(config));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_init_sends),
        cmocka_unit_test(refuses_what_it_cannot_serve),
        cmocka_unit_test(a_broker_over_tcp_needs_its_pin),
        cmocka_unit_test(the_agents_of_a_pair_meet_at_unix_sockets_alone),
        cmocka_unit_test(replaces_addresses_and_secrets),
        cmocka_unit_test(replaces_nothing_by_another_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
