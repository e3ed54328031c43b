/* Checks of the record, see config_check.h. */
#include "agent/config_check.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/connection.h"
#include "common/cleanup.h"

static const char *const role_names[] = {
    [RELAY_TO_BROKER] = "to the broker",
    [RELAY_TO_SERVER] = "to the server",
    [RELAY_TO_AGENT] = "to the inner agent",
    [RELAY_TO_RELAY] = "to the outer agent",
};
static_assert(ARRAY_LENGTH(role_names) == RELAY_ROLE_COUNT, "a name for each role");

static bool is_tcp(const struct endpoint *endpoint)
{
    switch (endpoint->kind) {
    case ENDPOINT_TCP4:
    case ENDPOINT_TCP6:
    case ENDPOINT_TCP_GATEWAY:
        return true;
    case ENDPOINT_VSOCK:
    case ENDPOINT_UNIX:
    case ENDPOINT_KIND_COUNT:
        break;
    }
    return false;
}

static int check_secret(const struct relay_forward *forward, struct failure *why)
{
    const char *secret = forward->secret;
    if (!memchr(secret, 0, sizeof(forward->secret)))
        return failure_set(why, EINVAL, "a secret without an end");
    if (secret[0] && !secret_is_hex(secret))
        return failure_set(why, EINVAL, "a secret that is not 64 lower-case hex digits");
    if (!secret[0] && role_rules[forward->role].demands)
        return failure_set(why, EINVAL, "a way in without a secret");
    if (secret[0] && forward->role == RELAY_TO_RELAY)
        return failure_set(why, EINVAL, "a secret where none is said or demanded");
    return 0;
}

static int check_forward(const struct relay_forward *forward, struct failure *why)
{
    if (forward->listen_fd < 0)
        return failure_set(why, EINVAL, "no listener");
    if (forward->dial_count == 0 || forward->dial_count > RELAY_DIALS_MAX)
        return failure_set(why, EINVAL, "%u addresses to dial, not 1 to %d", forward->dial_count,
                           RELAY_DIALS_MAX);
    if (forward->pin[0])
        return failure_set(why, EINVAL, "a pinned key needs TLS, which this relay does not speak");
    for (unsigned i = 0; i < forward->dial_count; i++) {
        const struct endpoint *dial = &forward->dials[i];
        char text[ENDPOINT_TEXT_MAX];
        if ((unsigned)dial->kind >= ENDPOINT_KIND_COUNT)
            return failure_set(why, EINVAL, "address %u is of unknown kind %u", i,
                               (unsigned)dial->kind);
        endpoint_format(dial, text);
        if (dial->kind == ENDPOINT_TCP_GATEWAY)
            return failure_set(why, EINVAL, "%s: this relay has no route to a gateway", text);
        if (forward->role == RELAY_TO_BROKER && is_tcp(dial))
            return failure_set(why, EINVAL,
                               "%s: a broker over TCP needs TLS, which this relay does not speak",
                               text);
    }
    return check_secret(forward, why);
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
        int result = check_forward(forward, why);
        if (result < 0)
            return failure_prefix(why, result, "forward %u, %s", i, role_names[forward->role]);
    }
    return 0;
}

static bool same_table(const struct relay_config *a, const struct relay_config *b)
{
    if (a->forward_count != b->forward_count || a->dns_count != b->dns_count ||
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
