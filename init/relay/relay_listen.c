/* Makes the listeners and the table (common/wire/relay_config.h) for each place where a relay
 * runs. */
#include "init/relay/relay_listen.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/secret.h"
#include "common/wire/protocol.h"
#include "init/relay/relay_folder.h"

#define TCP_BACKLOG 1024
#define VSOCK_BACKLOG 4096 /* with less a burst of connections loses some */

static const struct endpoint loopback_addresses[] = {
    {.kind = ENDPOINT_TCP4, .address = {127, 0, 0, 1}},
    {.kind = ENDPOINT_TCP6, .address = {[15] = 1}},
};

static const struct endpoint folder_out = {.kind = ENDPOINT_UNIX, .path = RELAY_FOLDER_OUT};
static const struct endpoint folder_in = {.kind = ENDPOINT_UNIX, .path = RELAY_FOLDER_IN};

/* Adds the descriptor to the table. Returns its number in the relay. */
static int keep_listener(struct relay_table *table, int fd)
{
    table->listeners[table->listener_count] = fd;
    return RELAY_FIRST_FD + (int)table->listener_count++;
}

static struct relay_forward *add_forward(struct relay_table *table, enum relay_role role, int fd)
{
    struct relay_forward *forward = &table->config.forwards[table->config.forward_count++];

    *forward = (struct relay_forward){.listen_fd = keep_listener(table, fd), .role = role};
    return forward;
}

static void add_dial(struct relay_forward *forward, const struct endpoint *endpoint, uint32_t port)
{
    struct endpoint *dial = &forward->dials[forward->dial_count++];

    *dial = *endpoint;
    dial->port = port;
}

static int listen_for_gateway(struct relay_table *table, enum relay_side side,
                              const struct boot_relay *relay, struct failure *why)
{
    for (unsigned number = 0; number < ARRAY_LENGTH(loopback_addresses); number++) {
        struct endpoint endpoint = loopback_addresses[number];
        endpoint.port = relay->listen;
        int fd = endpoint_listen(&endpoint, TCP_BACKLOG, why);
        if (fd < 0)
            return fd;
        if (side == RELAY_SIDE_INSIDE)
            add_dial(add_forward(table, RELAY_TO_RELAY, fd), &folder_out, 0);
        else
            add_forward(table, RELAY_TO_BROKER, fd);
    }
    return 0;
}

/* A forward from a listener to the server. */
static void add_way_in(struct relay_table *table, int fd, bool half_close,
                       const struct boot_config *config)
{
    struct relay_forward *forward = add_forward(table, RELAY_TO_SERVER, fd);

    forward->framed = config->way_in.framed;
    forward->half_close = half_close || config->way_in.framed;
    for (unsigned number = 0; number < ARRAY_LENGTH(loopback_addresses); number++)
        add_dial(forward, &loopback_addresses[number], config->server.port);
}

static int bind_dns_datagrams(struct endpoint endpoint, struct failure *why)
{
    struct sockaddr_storage address;
    const int length = endpoint_sockaddr(&endpoint, &address), on = 1;
    CLEANUP_FD int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return failure_errno(why, errno, "make a socket for DNS");
    if (endpoint.kind == ENDPOINT_TCP6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, (socklen_t)length) < 0)
        return failure_errno(why, errno, "bind port %d for DNS", DNS_PORT);
    return fd_steal(&fd);
}

static int listen_for_dns(struct relay_table *table, struct failure *why)
{
    struct relay_config *config = &table->config;

    for (unsigned number = 0; number < ARRAY_LENGTH(loopback_addresses); number++) {
        struct endpoint endpoint = loopback_addresses[number];
        endpoint.port = DNS_PORT;
        int fd = bind_dns_datagrams(endpoint, why);
        if (fd < 0)
            return fd;
        config->dns_fds[config->dns_count++] = keep_listener(table, fd);
        fd = endpoint_listen(&endpoint, TCP_BACKLOG, why);
        if (fd < 0)
            return fd;
        config->dns_fds[config->dns_count++] = keep_listener(table, fd);
    }
    return 0;
}

static bool lets_in(const struct boot_config *config)
{
    return config->way_in.present && config->server.port != 0;
}

static int listen_in_machine(struct relay_table *table, int folder_listener_fd,
                             struct boot_config *config, struct failure *why)
{
    int result = 0;

    (void)folder_listener_fd;
    if (config->relay.present)
        result = listen_for_gateway(table, RELAY_SIDE_MACHINE, &config->relay, why);
    if (result == 0 && lets_in(config)) {
        result = endpoint_listen(&config->way_in.listen, VSOCK_BACKLOG, why);
        if (result < 0)
            return result;
        bool keeps_half_close = config->way_in.listen.kind != ENDPOINT_VSOCK;
        add_way_in(table, result, keeps_half_close, config);
        result = 0;
    }
    return result < 0 ? result : listen_for_dns(table, why);
}

static int listen_inside(struct relay_table *table, int folder_listener_fd,
                         struct boot_config *config, struct failure *why)
{
    int result = 0;

    if (config->relay.present)
        result = listen_for_gateway(table, RELAY_SIDE_INSIDE, &config->relay, why);
    if (lets_in(config))
        add_way_in(table, folder_listener_fd, true, config);
    return result < 0 ? result : listen_for_dns(table, why);
}

static int keep_route(struct relay_table *table, const struct boot_relay *relay,
                      struct failure *why)
{
    bool needed = false;

    for (unsigned number = 0; relay->present && number < relay->transport_count; number++)
        needed = needed || relay->transports[number].kind == ENDPOINT_TCP_GATEWAY;
    if (!needed)
        return 0;
    int fd = open("/proc/net/route", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failure_errno(why, errno, "open /proc/net/route");
    table->config.route_fd = keep_listener(table, fd);
    return 0;
}

static int listen_outside(struct relay_table *table, int folder_listener_fd,
                          struct boot_config *config, struct failure *why)
{
    if (config->relay.present)
        add_forward(table, RELAY_TO_BROKER, folder_listener_fd);
    if (config->way_in.present) {
        int fd = endpoint_listen(&config->way_in.listen, TCP_BACKLOG, why);
        if (fd < 0)
            return fd;
        struct relay_forward *forward = add_forward(table, RELAY_TO_AGENT, fd);
        forward->half_close = true;
        add_dial(forward, &folder_in, 0);
    }
    return keep_route(table, &config->relay, why);
}

int relay_listen(struct relay_table *table, enum relay_side side, int folder_listener_fd,
                 struct boot_config *config, struct failure *why)
{
    static int (*const listen_at[])(struct relay_table * table, int folder_listener_fd,
                                    struct boot_config *config, struct failure *why) = {
        [RELAY_SIDE_MACHINE] = listen_in_machine,
        [RELAY_SIDE_INSIDE] = listen_inside,
        [RELAY_SIDE_OUTSIDE] = listen_outside,
    };

    *table = (struct relay_table){
        .config = {.magic = RELAY_CONFIG_MAGIC, .size = sizeof(table->config)}};
    return listen_at[side](table, folder_listener_fd, config, why);
}

static void fill_broker(struct relay_forward *forward, const struct boot_relay *relay)
{
    forward->dial_count = relay->transport_count;
    memcpy(forward->dials, relay->transports, sizeof(forward->dials));
    memcpy(forward->secret, relay->token, sizeof(forward->secret));
    memcpy(forward->pin, relay->pin, sizeof(forward->pin));
}
static_assert(BOOT_TRANSPORTS_MAX == RELAY_DIALS_MAX, "the array is copied as it is");

void relay_table_fill(struct relay_table *table, const struct boot_config *config)
{
    for (unsigned number = 0; number < table->config.forward_count; number++) {
        struct relay_forward *forward = &table->config.forwards[number];
        if (forward->role == RELAY_TO_BROKER)
            fill_broker(forward, &config->relay);
        else if (forward->role != RELAY_TO_RELAY)
            memcpy(forward->secret, config->way_in.secret, sizeof(forward->secret));
    }
}

void relay_table_wipe(struct relay_table *table)
{
    for (unsigned number = 0; number < table->config.forward_count; number++)
        secret_wipe(table->config.forwards[number].secret,
                    sizeof(table->config.forwards[number].secret));
}
