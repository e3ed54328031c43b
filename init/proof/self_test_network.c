/* The self-test's checks of the network: no device, no other kind of socket, no address but
 * loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "init/machine/network.h"
#include "init/proof/self_test_internal.h"

#define REFUSAL_MS 1000 /* a refusal takes 0 ms; no answer for this long is not one */

#ifndef AF_VSOCK
#define AF_VSOCK 40
#endif

/* Documentation networks (RFC 5737, RFC 3849), the metadata service of clouds, QEMU's address of
 * its host, and private ones that many networks use. */
static const struct {
    const char *address;
    uint16_t port;
} outside[] = {
    {"192.0.2.1", 443},  {"169.254.169.254", 80}, {"10.0.2.2", 22},
    {"192.168.1.1", 80}, {"2001:db8::1", 443},    {"fd00::1", 443},
};

bool check_no_network_device(const struct self_test_context *context,
                             struct self_test_detail *detail)
{
    struct failure why;

    (void)context;
    if (network_check_interfaces(&why) < 0)
        return self_test_say(detail, false, "%s", why.text);
    return self_test_say(detail, true, "lo and nothing else");
}

static bool no_socket(struct self_test_detail *detail, int family, int type, int protocol,
                      const char *what)
{
    CLEANUP_FD int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    return self_test_refused(detail, fd, what);
}

bool check_no_vsock(const struct self_test_context *context, struct self_test_detail *detail)
{
    (void)context;
    return no_socket(detail, AF_VSOCK, SOCK_DGRAM, 0, "AF_VSOCK, SOCK_DGRAM") &&
           no_socket(detail, AF_VSOCK, SOCK_STREAM, 0, "AF_VSOCK, SOCK_STREAM");
}

bool check_no_packet_socket(const struct self_test_context *context,
                            struct self_test_detail *detail)
{
    (void)context;
    return no_socket(detail, AF_INET, SOCK_PACKET, htons(ETH_P_ALL), "AF_INET, SOCK_PACKET") &&
           no_socket(detail, AF_PACKET, SOCK_RAW, htons(ETH_P_ALL), "AF_PACKET, SOCK_RAW");
}

bool check_no_raw_socket(const struct self_test_context *context, struct self_test_detail *detail)
{
    (void)context;
    return no_socket(detail, AF_INET, SOCK_DGRAM, IPPROTO_ICMP, "ICMP") &&
           no_socket(detail, AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, "AF_INET6, SOCK_RAW") &&
           no_socket(detail, AF_INET, SOCK_RAW, IPPROTO_RAW, "AF_INET, SOCK_RAW");
}

bool check_no_netfilter_socket(const struct self_test_context *context,
                               struct self_test_detail *detail)
{
    (void)context;
    return no_socket(detail, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, "NETLINK_NETFILTER");
}

int self_test_reach(const struct sockaddr_storage *address, socklen_t length, int type)
{
    CLEANUP_FD int fd = socket(address->ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct pollfd ready = {.fd = fd, .events = type == SOCK_STREAM ? POLLOUT : POLLIN};
    int error = 0;
    socklen_t error_length = sizeof(error);

    if (fd < 0)
        return errno;
    if (connect(fd, (const struct sockaddr *)address, length) < 0 && errno != EINPROGRESS)
        return errno;
    if (type == SOCK_DGRAM &&
        send(fd, SELF_TEST_DATAGRAM, sizeof(SELF_TEST_DATAGRAM) - 1, MSG_NOSIGNAL) < 0)
        return errno;
    if (poll(&ready, 1, REFUSAL_MS) <= 0)
        return 0;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_length) < 0 ? errno : error;
}

static socklen_t parse_address(struct sockaddr_storage *out, const char *text, uint16_t port)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return sizeof(*v4);
    }
    (void)inet_pton(AF_INET6, text, &v6->sin6_addr);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return sizeof(*v6);
}

static bool refused_outside(struct self_test_detail *detail, int type)
{
    int error = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(outside); i++) {
        struct sockaddr_storage address;
        socklen_t length = parse_address(&address, outside[i].address, outside[i].port);
        error = self_test_reach(&address, length, type);
        if (error == 0)
            return self_test_say(detail, false, "%s port %u is not refused", outside[i].address,
                                 outside[i].port);
    }
    return self_test_say(detail, true, "%zu addresses: %s", ARRAY_LENGTH(outside), strerror(error));
}

static bool refused_endpoint(const struct endpoint *endpoint, struct self_test_detail *detail)
{
    struct sockaddr_storage address;
    char text[ENDPOINT_TEXT_MAX];

    if (endpoint->kind != ENDPOINT_TCP4 && endpoint->kind != ENDPOINT_TCP6)
        return true;
    int length = endpoint_sockaddr(endpoint, &address);
    if (length >= 0 && self_test_reach(&address, (socklen_t)length, SOCK_STREAM) != 0)
        return true;
    endpoint_format(endpoint, text);
    return self_test_say(detail, false, "%.80s is not refused", text);
}

/* The broker's own addresses, where they are of this kind, and the way in's are the agent's
 * alone. */
static bool refused_transports(const struct self_test_context *context,
                               struct self_test_detail *detail)
{
    const struct boot_config *config = context->config;

    for (unsigned i = 0; config->relay.present && i < config->relay.transport_count; i++)
        if (!refused_endpoint(&config->relay.transports[i], detail))
            return false;
    return !config->way_in.present || refused_endpoint(&config->way_in.listen, detail);
}

bool check_no_tcp_outside(const struct self_test_context *context, struct self_test_detail *detail)
{
    return refused_transports(context, detail) && refused_outside(detail, SOCK_STREAM);
}

bool check_no_udp_outside(const struct self_test_context *context, struct self_test_detail *detail)
{
    (void)context;
    return refused_outside(detail, SOCK_DGRAM);
}
