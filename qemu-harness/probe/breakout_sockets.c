/* Breakout: sockets of all families, and changes to the machine's network. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/probe/breakout.h"

#define FAMILY_MAX 46
#define CONNECT_LIMIT_MS 5000
#define KIND(family, type, protocol) ((long)(family) << 16 | (long)(type) << 8 | (protocol))

static long make(const struct breakout_vector *vector)
{
    CLEANUP_FD int fd =
        socket((int)(vector->number >> 16), (int)(vector->number >> 8 & 255) | SOCK_CLOEXEC,
               (int)(vector->number & 255));
    return fd < 0 ? -1 : 0;
}

/* All families but the four that programs in a sandbox may use. */
static long any_other(const struct breakout_vector *vector)
{
    int error = EAFNOSUPPORT;
    (void)vector;
    for (int family = 0; family < FAMILY_MAX; family++) {
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
            continue;
        for (int type = SOCK_STREAM; type <= SOCK_PACKET; type++) {
            CLEANUP_FD int fd = socket(family, type | SOCK_CLOEXEC, 0);
            if (fd >= 0)
                return 0;
            error = errno == EAFNOSUPPORT ? error : errno;
        }
    }
    errno = error;
    return -1;
}

static long vsock_listen(const struct breakout_vector *vector)
{
    struct sockaddr_vm address = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = 4444};
    (void)vector;
    CLEANUP_FD int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -1;
    return listen(fd, 1);
}

/* An option of a TCP socket that needs CAP_NET_ADMIN. */
static long set_option(const struct breakout_vector *vector)
{
    int on = 1;
    CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -1
                  : setsockopt(fd, (int)(vector->number >> 16), (int)(vector->number & 0xffff), &on,
                               sizeof(on));
}

static long low_port(const struct breakout_vector *vector)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)vector->number)};
    CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof(address));
}

static long lo_setting(const struct breakout_vector *vector)
{
    struct ifreq request = {.ifr_name = "lo"};
    CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (vector->number == SIOCSIFMTU)
        request.ifr_mtu = 65536;
    else
        request.ifr_flags = IFF_UP;
    return ioctl(fd, (unsigned long)vector->number, &request);
}

struct route_message {
    struct nlmsghdr head;
    union {
        struct ifaddrmsg address;
        struct rtmsg route;
        struct ifinfomsg link;
    } body;
    struct rtattr attribute;
    uint32_t value;
};

/* Sends one message to NETLINK_ROUTE and returns the kernel's answer. */
static long ask_route(struct route_message *message, uint16_t type, size_t body)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[512];
    } answer = {0};
    message->head = (struct nlmsghdr){.nlmsg_type = type,
                                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE,
                                      .nlmsg_len = (uint32_t)(NLMSG_LENGTH(body) + RTA_LENGTH(4))};
    char wire[128] = {0};
    memcpy(wire, &message->head, sizeof(message->head));
    memcpy(wire + NLMSG_HDRLEN, &message->body, body);
    message->attribute.rta_len = RTA_LENGTH(4);
    memcpy(wire + NLMSG_LENGTH(body), &message->attribute, sizeof(message->attribute));
    memcpy(wire + NLMSG_LENGTH(body) + RTA_LENGTH(0), &message->value, 4);
    CLEANUP_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0 || send(fd, wire, message->head.nlmsg_len, 0) < 0 ||
        recv(fd, &answer, sizeof(answer), 0) < 0)
        return -1;
    errno = -answer.error.error;
    return answer.error.error == 0 ? 0 : -1;
}

static long add_address(const struct breakout_vector *vector)
{
    struct route_message message = {.body.address = {.ifa_family = AF_INET,
                                                     .ifa_prefixlen = 32,
                                                     .ifa_index = if_nametoindex("lo")},
                                    .attribute.rta_type = IFA_LOCAL,
                                    .value = htonl(0x0a090807)};
    (void)vector;
    return ask_route(&message, RTM_NEWADDR, sizeof(message.body.address));
}

static long add_route(const struct breakout_vector *vector)
{
    struct route_message message = {.body.route = {.rtm_family = AF_INET,
                                                   .rtm_table = RT_TABLE_MAIN,
                                                   .rtm_protocol = RTPROT_STATIC,
                                                   .rtm_scope = RT_SCOPE_LINK,
                                                   .rtm_type = RTN_UNICAST},
                                    .attribute.rta_type = RTA_OIF,
                                    .value = if_nametoindex("lo")};
    (void)vector;
    return ask_route(&message, RTM_NEWROUTE, sizeof(message.body.route));
}

static long change_lo(const struct breakout_vector *vector)
{
    struct route_message message = {.body.link = {.ifi_index = (int)if_nametoindex("lo")},
                                    .attribute.rta_type = IFLA_TXQLEN,
                                    .value = 1000};
    (void)vector;
    return ask_route(&message, RTM_NEWLINK, sizeof(message.body.link));
}

static long reach(const struct breakout_vector *vector)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(443)};
    int family = strchr(vector->path, ':') ? AF_INET6 : AF_INET, error = 0;
    inet_pton(family, vector->path,
              family == AF_INET6 ? (void *)&six.sin6_addr : (void *)&four.sin_addr);
    const struct sockaddr *address = family == AF_INET6 ? (void *)&six : (void *)&four;
    CLEANUP_FD int fd = socket(family, (int)vector->number | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, address, family == AF_INET6 ? sizeof(six) : sizeof(four)) == 0)
        return vector->number == SOCK_DGRAM ? send(fd, "x", 1, 0) : 0;
    if (errno != EINPROGRESS)
        return -1;
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    socklen_t length = sizeof(error);
    if (poll(&wait, 1, CONNECT_LIMIT_MS) <= 0)
        return 0; /* not refused at once counts as worked */
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    errno = error;
    return error ? -1 : 0;
}

#define NO_FAMILY "this kernel has no such family"
#define NO_CARD "this kernel drives no network card"
#define OPTION(level, name) ((long)(level) << 16 | (name))

static const struct breakout_vector sockets[] = {
    {.name = "AF_VSOCK stream", .attempt = make, .number = KIND(AF_VSOCK, SOCK_STREAM, 0)},
    {.name = "AF_VSOCK sequenced", .attempt = make, .number = KIND(AF_VSOCK, SOCK_SEQPACKET, 0)},
    {.name = "AF_VSOCK listener", .attempt = vsock_listen},
    {.name = "AF_PACKET", .path = "packet", .cannot = NO_FAMILY},
    {.name = "AF_INET raw", .path = "raw"},
    {.name = "AF_INET raw, any protocol", .attempt = make, .number = KIND(AF_INET, SOCK_RAW, 255)},
    {.name = "AF_INET packet",
     .attempt = make,
     .number = KIND(AF_INET, SOCK_PACKET, 0),
     .cannot = NO_FAMILY},
    {.name = "AF_INET6 raw", .path = "raw6"},
    {.name = "multipath TCP", .path = "mptcp", .cannot = "this kernel has no multipath TCP"},
    {.name = "AF_NETLINK netfilter", .path = "netfilter"},
    {.name = "AF_NETLINK audit", .path = "audit", .cannot = "this kernel has no audit"},
    {.name = "AF_NETLINK generic",
     .attempt = make,
     .number = KIND(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC)},
    {.name = "AF_NETLINK kobject-uevent",
     .attempt = make,
     .number = KIND(AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT)},
    {.name = "AF_NETLINK sock-diag",
     .attempt = make,
     .number = KIND(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG)},
    {.name = "AF_ALG",
     .attempt = make,
     .number = KIND(AF_ALG, SOCK_SEQPACKET, 0),
     .cannot = NO_FAMILY},
    {.name = "AF_KEY", .attempt = make, .number = KIND(AF_KEY, SOCK_RAW, 2), .cannot = NO_FAMILY},
    {.name = "AF_BLUETOOTH",
     .attempt = make,
     .number = KIND(AF_BLUETOOTH, SOCK_RAW, 1),
     .cannot = NO_FAMILY},
    {.name = "AF_XDP", .attempt = make, .number = KIND(44, SOCK_RAW, 0), .cannot = NO_FAMILY},
    {.name = "every other family and type", .attempt = any_other},
    {.name = "a mark on packets", .attempt = set_option, .number = OPTION(SOL_SOCKET, SO_MARK)},
    {.name = "a transparent proxy",
     .attempt = set_option,
     .number = OPTION(IPPROTO_IP, IP_TRANSPARENT)},
    {.name = "a buffer beyond the limit",
     .attempt = set_option,
     .number = OPTION(SOL_SOCKET, SO_RCVBUFFORCE)},
    {.name = "a TCP state made by hand",
     .attempt = set_option,
     .number = OPTION(IPPROTO_TCP, TCP_REPAIR)},
    {.name = "a port below 1024", .attempt = low_port, .number = 81},
    {.name = "lo's size by ioctl", .attempt = lo_setting, .number = SIOCSIFMTU},
    {.name = "lo's flags by ioctl", .attempt = lo_setting, .number = SIOCSIFFLAGS},
    {.name = "lo's settings by netlink", .attempt = change_lo},
    {.name = "TCP to 1.1.1.1",
     .attempt = reach,
     .path = "1.1.1.1",
     .number = SOCK_STREAM,
     .cannot = NO_CARD},
    {.name = "UDP to 1.1.1.1",
     .attempt = reach,
     .path = "1.1.1.1",
     .number = SOCK_DGRAM,
     .cannot = NO_CARD},
    {.name = "TCP to the usual gateway 10.0.2.2",
     .attempt = reach,
     .path = "10.0.2.2",
     .number = SOCK_STREAM,
     .cannot = NO_CARD},
    {.name = "TCP to 169.254.169.254",
     .attempt = reach,
     .path = "169.254.169.254",
     .number = SOCK_STREAM,
     .cannot = NO_CARD},
    {.name = "TCP over IPv6",
     .attempt = reach,
     .path = "2606:4700:4700::1111",
     .number = SOCK_STREAM,
     .cannot = NO_CARD},
    {.name = "UDP over IPv6",
     .attempt = reach,
     .path = "2606:4700:4700::1111",
     .number = SOCK_DGRAM,
     .cannot = NO_CARD},
    /* last, because these changes stay */
    {.name = "an address by netlink", .attempt = add_address},
    {.name = "a default route by netlink", .attempt = add_route},
};
const struct breakout_group breakout_sockets = {"sockets and network", sockets,
                                                ARRAY_LENGTH(sockets), 0};
