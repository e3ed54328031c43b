/* Stage `network`: brings lo up, checks that there is no other interface, refuses all other
 * addresses.
 *
 * The isolation depends on the absence of network devices, so the kernel is asked for all its
 * interfaces. The `unreachable` routes refuse every other address at once for every protocol, also
 * where the firewall can only drop packets (a kernel without `reject`).
 */
#include "init/machine/network.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/system/text.h"

#define NETLINK_BUFFER 16384
#define COMMAND_LINE_MAX 8192
#define ROUTE_SEQUENCE 1

/* Devices that tunnel drivers make in every new network namespace. They carry no traffic while they
 * are down and have no address. */
static const char *const fallback_tunnels[] = {
    "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0",
};

static int lo_up(struct failure *why)
{
    struct ifreq request = {.ifr_name = "lo"};
    CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return failure_errno(why, errno, "make a socket to configure lo");
    if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
        return failure_errno(why, errno, "examine lo");
    if ((request.ifr_flags & IFF_UP) != 0)
        return 0;
    request.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return failure_errno(why, errno, "bring lo up");
    return 0;
}

/* Sends one request and calls `each` for every message of the answer. 0 or a negative errno. */
static int netlink_ask(struct nlmsghdr *request, mnl_cb_t each, void *data)
{
    char buffer[NETLINK_BUFFER];
    struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    int result = !socket ? -errno : 0;

    request->nlmsg_seq = ROUTE_SEQUENCE;
    if (result == 0 && mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
        result = -errno;
    for (int more = MNL_CB_OK; result == 0 && more > MNL_CB_STOP;) {
        ssize_t length = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
        if (length >= 0)
            more = mnl_cb_run(buffer, (size_t)length, ROUTE_SEQUENCE, 0, each, data);
        if (length < 0 || more < 0)
            result = -errno;
    }
    if (socket)
        mnl_socket_close(socket);
    return result;
}

/* `ip [-6] route add unreachable default` */
static int route_refuse_all(unsigned char family, struct failure *why)
{
    char buffer[256] = {0};
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

    message->nlmsg_type = RTM_NEWROUTE;
    message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    struct rtmsg *route = mnl_nlmsg_put_extra_header(message, sizeof(*route));
    route->rtm_family = family;
    route->rtm_table = RT_TABLE_MAIN;
    route->rtm_protocol = RTPROT_STATIC;
    route->rtm_scope = RT_SCOPE_UNIVERSE;
    route->rtm_type = RTN_UNREACHABLE;

    int result = netlink_ask(message, NULL, NULL);
    if (result == 0 || result == -EEXIST)
        return 0;
    return failure_errno(why, -result, "add the unreachable %s route",
                         family == AF_INET ? "IPv4" : "IPv6");
}

struct interface_check {
    char wrong[IF_NAMESIZE]; /* the first forbidden interface */
    const char *reason;
    unsigned tunnels[ARRAY_LENGTH(
        fallback_tunnels)]; /* indices of those that are allowed without address */
    unsigned tunnel_count;
};

static void interface_wrong(struct interface_check *check, const char *name, const char *reason)
{
    if (check->reason)
        return;
    check->reason = reason;
    memcpy(check->wrong, name, strnlen(name, sizeof(check->wrong) - 1));
}

static bool is_fallback_tunnel(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(fallback_tunnels); i++) {
        if (strcmp(name, fallback_tunnels[i]) == 0)
            return true;
    }
    return false;
}

static int interface_look(const struct nlmsghdr *message, void *data)
{
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);
    struct interface_check *check = data;
    const struct nlattr *attribute;
    const char *name = "?";

    mnl_attr_for_each(attribute, message, sizeof(*link))
    {
        if (mnl_attr_get_type(attribute) == IFLA_IFNAME &&
            mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) >= 0)
            name = mnl_attr_get_str(attribute);
    }
    if ((link->ifi_flags & IFF_LOOPBACK) != 0 && strcmp(name, "lo") == 0)
        return MNL_CB_OK;
    if (!is_fallback_tunnel(name) || check->tunnel_count == ARRAY_LENGTH(check->tunnels))
        interface_wrong(check, name, "is there");
    else if ((link->ifi_flags & IFF_UP) != 0)
        interface_wrong(check, name, "is up");
    else
        check->tunnels[check->tunnel_count++] = (unsigned)link->ifi_index;
    return MNL_CB_OK;
}

static int address_look(const struct nlmsghdr *message, void *data)
{
    const struct ifaddrmsg *address = mnl_nlmsg_get_payload(message);
    struct interface_check *check = data;

    for (unsigned i = 0; i < check->tunnel_count; i++) {
        if (check->tunnels[i] == address->ifa_index)
            interface_wrong(check, "a fallback tunnel", "has an address");
    }
    return MNL_CB_OK;
}

static int dump(uint16_t type, mnl_cb_t each, struct interface_check *check)
{
    char buffer[256] = {0};
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

    message->nlmsg_type = type;
    message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    (void)mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
    return netlink_ask(message, each, check);
}

int network_check_interfaces(struct failure *why)
{
    struct interface_check check = {.reason = NULL};
    int result = dump(RTM_GETLINK, interface_look, &check);

    if (result == 0 && check.tunnel_count > 0)
        result = dump(RTM_GETADDR, address_look, &check);
    if (result < 0)
        return failure_errno(why, -result, "ask for the network interfaces");
    if (check.reason)
        return failure_set(why, EPERM,
                           "the network interface %s %s: a sandbox has lo and nothing else",
                           check.wrong, check.reason);
    return 0;
}

/* libkrun without a network device opens the guest's sockets on the host (TSI), which is a
 * network. */
static int refuse_socket_proxy(struct failure *why)
{
    char line[COMMAND_LINE_MAX];
    ssize_t length = io_read_file(AT_FDCWD, "/proc/cmdline", 0, line, sizeof(line));

    if (length < 0)
        return failure_errno(why, (int)-length, "read the kernel command line");
    if (text_contains(line, "tsi_hijack"))
        return failure_set(why, EPERM,
                           "the kernel command line has tsi_hijack: sockets of this guest "
                           "would be opened on the host");
    return 0;
}

/* Without ICMP sockets, rules for TCP and UDP cover all sockets that an account can open. */
static void refuse_ping_sockets(void)
{
    (void)io_write_file(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", O_WRONLY, 0, "1 0");
}

static bool has_ipv6(void)
{
    CLEANUP_FD int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0;
}

int network_prepare(struct failure *why)
{
    int result = refuse_socket_proxy(why);

    if (result == 0)
        result = network_check_interfaces(why);
    if (result == 0)
        result = lo_up(why);
    if (result == 0)
        result = route_refuse_all(AF_INET, why);
    if (result == 0 && has_ipv6())
        result = route_refuse_all(AF_INET6, why);
    if (result == 0)
        refuse_ping_sockets();
    return result;
}
