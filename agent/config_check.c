/* Checks a record from codev-init. */
#include "agent/config_check.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "agent/connection.h"
#include "common/os/cleanup.h"

static const char *const role_names[] = {
    [RELAY_TO_BROKER] = "to the broker",
    [RELAY_TO_SERVER] = "to the server",
    [RELAY_TO_AGENT] = "to the inner relay",
    [RELAY_TO_RELAY] = "to the outer relay",
};
static_assert(ARRAY_LENGTH(role_names) == RELAY_ROLE_COUNT, "a name for each role");

static int check_secret(const struct relay_forward *forward, struct failure *why)
{
    const char *secret = forward->secret;
    if (!memchr(secret, 0, sizeof(forward->secret)))
        return failure_set(why, EINVAL, "a secret without a final NUL");
    if (secret[0] && !secret_is_hex(secret))
        return failure_set(why, EINVAL, "a secret that is not 64 lower-case hex digits");
    if (!secret[0] && role_rules[forward->role].demands)
        return failure_set(why, EINVAL, "a way in without a secret");
    if (secret[0] && forward->role == RELAY_TO_RELAY)
        return failure_set(why, EINVAL, "a secret for a role that neither sends nor demands one");
    return 0;
}

/* Over TCP, a network that others share, the token is sent only under a pinned key. */
static int check_pin(const struct relay_forward *forward, struct failure *why)
{
    unsigned over_tcp = 0;
    if (!memchr(forward->pin, 0, sizeof(forward->pin)))
        return failure_set(why, EINVAL, "a pinned key without a final NUL");
    if (forward->pin[0] && !secret_is_hex(forward->pin))
        return failure_set(why, EINVAL, "a pinned key that is not 64 lower-case hex digits");
    for (unsigned i = 0; i < forward->dial_count; i++)
        over_tcp += endpoint_is_tcp(&forward->dials[i]);
    if (forward->pin[0] && (forward->role != RELAY_TO_BROKER || over_tcp == 0))
        return failure_set(why, EINVAL, "a pinned key, but no broker is dialled over TCP");
    if (!forward->pin[0] && forward->role == RELAY_TO_BROKER && over_tcp > 0)
        return failure_set(why, EINVAL, "a broker over TCP without a pinned key");
    return 0;
}

static int check_dial(const struct relay_config *config, const struct relay_forward *forward,
                      const struct endpoint *dial, struct failure *why)
{
    char text[ENDPOINT_TEXT_MAX];
    if ((unsigned)dial->kind >= ENDPOINT_KIND_COUNT)
        return failure_set(why, EINVAL, "an address of unknown kind %u", (unsigned)dial->kind);
    endpoint_format(dial, text);
    if (role_rules[forward->role].to_pair && dial->kind != ENDPOINT_UNIX)
        return failure_set(why, EINVAL, "%s: the other relay is reached through a Unix socket only",
                           text);
    if (dial->kind == ENDPOINT_TCP_GATEWAY && forward->role != RELAY_TO_BROKER)
        return failure_set(why, EINVAL, "%s: only the broker can be dialled at the gateway", text);
    if (dial->kind == ENDPOINT_TCP_GATEWAY && config->route_fd <= STDERR_FILENO)
        return failure_set(why, EINVAL, "%s: the table of routes was not inherited", text);
    return 0;
}

static int check_framed(const struct relay_forward *forward, struct failure *why)
{
    if (forward->framed && (forward->role != RELAY_TO_SERVER || !forward->half_close))
        return failure_set(why, EINVAL, "framed without half_close, or not to the server");
    return 0;
}

static int check_forward(const struct relay_config *config, const struct relay_forward *forward,
                         struct failure *why)
{
    if (forward->listen_fd < 0)
        return failure_set(why, EINVAL, "no listener");
    if (forward->dial_count == 0 || forward->dial_count > RELAY_DIALS_MAX)
        return failure_set(why, EINVAL, "%u addresses to dial, not 1 to %d", forward->dial_count,
                           RELAY_DIALS_MAX);
    for (unsigned i = 0; i < forward->dial_count; i++) {
        int result = check_dial(config, forward, &forward->dials[i], why);
        if (result < 0)
            return result;
    }
    int result = check_framed(forward, why);
    if (result == 0)
        result = check_pin(forward, why);
    return result < 0 ? result : check_secret(forward, why);
}

int config_check(const struct relay_config *config, struct failure *why)
{
    if (config->magic != RELAY_CONFIG_MAGIC || config->size != sizeof(*config))
        return failure_set(why, EINVAL,
                           "the record on descriptor 0 is not one of this build's codev-init");
    if (config->forward_count > RELAY_FORWARDS_MAX || config->dns_count > RELAY_DNS_MAX)
        return failure_set(why, EINVAL, "%u forwards and %u DNS sockets, more than %d and %d",
                           config->forward_count, config->dns_count, RELAY_FORWARDS_MAX,
                           RELAY_DNS_MAX);
    for (unsigned i = 0; i < config->forward_count; i++) {
        const struct relay_forward *forward = &config->forwards[i];
        if (forward->role >= RELAY_ROLE_COUNT)
            return failure_set(why, EINVAL, "forward %u: unknown role %u", i, forward->role);
        int result = check_forward(config, forward, why);
        if (result < 0)
            return failure_prefix(why, result, "forward %u, %s", i, role_names[forward->role]);
    }
    return 0;
}

static bool same_table(const struct relay_config *a, const struct relay_config *b)
{
    if (a->forward_count != b->forward_count || a->dns_count != b->dns_count ||
        a->route_fd != b->route_fd ||
        memcmp(a->dns_fds, b->dns_fds, a->dns_count * sizeof(a->dns_fds[0])) != 0)
        return false;
    for (unsigned i = 0; i < a->forward_count; i++) {
        if (a->forwards[i].listen_fd != b->forwards[i].listen_fd ||
            a->forwards[i].role != b->forwards[i].role)
            return false;
    }
    return true;
}

int config_replace(struct relay_config *current, const struct relay_config *next,
                   struct failure *why)
{
    int result = config_check(next, why);
    if (result < 0)
        return result;
    if (!same_table(current, next))
        return failure_set(why, EINVAL, "listeners and roles cannot change while the relay runs");
    *current = *next;
    return 0;
}
