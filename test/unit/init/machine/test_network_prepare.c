/* Unit tests of init/machine/network.c in network namespaces of their own. */
#include "test/harness/child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "init/machine/network.h"

static void prepare(void)
{
    struct failure why;

    CHILD_ASSERT(unshare(CLONE_NEWNET) == 0);
    if (network_prepare(&why) < 0) {
        dprintf(STDERR_FILENO, "%s\n", why.text);
        _exit(1);
    }
}

static int connect_to(int family, const char *text, int type)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    int fd = socket(family, type | SOCK_NONBLOCK, 0), result;

    CHILD_ASSERT(fd >= 0);
    inet_pton(family, text, family == AF_INET ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr);
    result = family == AF_INET ? connect(fd, (struct sockaddr *)&v4, sizeof(v4))
                               : connect(fd, (struct sockaddr *)&v6, sizeof(v6));
    int error = result < 0 ? errno : 0;
    close(fd);
    return error;
}

/* Loopback works in both families, everything else is refused at once, and twice is as good as
 * once. */
static void lo_and_nothing_else(void)
{
    struct failure why;

    prepare();
    CHILD_ASSERT(network_prepare(&why) == 0);
    CHILD_ASSERT(connect_to(AF_INET, "192.0.2.1", SOCK_STREAM) == EHOSTUNREACH);
    CHILD_ASSERT(connect_to(AF_INET, "192.0.2.1", SOCK_DGRAM) == EHOSTUNREACH);
    CHILD_ASSERT(connect_to(AF_INET6, "2001:db8::1", SOCK_STREAM) == EHOSTUNREACH);
    CHILD_ASSERT(connect_to(AF_INET6, "2001:db8::1", SOCK_DGRAM) == EHOSTUNREACH);
    CHILD_ASSERT(connect_to(AF_INET, "127.0.0.1", SOCK_DGRAM) == 0);
    CHILD_ASSERT(connect_to(AF_INET6, "::1", SOCK_DGRAM) == 0);
    CHILD_ASSERT(connect_to(AF_INET, "127.0.0.1", SOCK_STREAM) != EHOSTUNREACH);
    CHILD_ASSERT(network_check_interfaces(&why) == 0);
    CHILD_ASSERT(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) == -1);
}

/* `ip link add NAME type KIND`; false when this kernel has no such kind. */
static int add_interface(const char *name, const char *kind)
{
    char buffer[1024] = {0};
    struct mnl_socket *socket = mnl_socket_open(NETLINK_ROUTE);
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

    message->nlmsg_type = RTM_NEWLINK;
    message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    message->nlmsg_seq = 1;
    (void)mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(message, IFLA_IFNAME, name);
    struct nlattr *info = mnl_attr_nest_start(message, IFLA_LINKINFO);
    mnl_attr_put_str(message, IFLA_INFO_KIND, kind);
    mnl_attr_nest_end(message, info);
    CHILD_ASSERT(socket && mnl_socket_sendto(socket, message, message->nlmsg_len) > 0);
    ssize_t length = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
    CHILD_ASSERT(length > 0);
    int result = mnl_cb_run(buffer, (size_t)length, 1, 0, NULL, NULL) < 0 ? -errno : 0;
    mnl_socket_close(socket);
    return result;
}

/* Any kind that the kernel of the day has. */
static void add_some_interface(const char *name)
{
    static const char *const kinds[] = {"veth", "dummy", "bridge", "ifb", "sit", "vcan", "nlmon"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (add_interface(name, kinds[i]) == 0)
            return;
    }
    CHILD_ASSERT(!"this kernel can make no interface");
}

static void bring_up(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    strcpy(request.ifr_name, name);
    CHILD_ASSERT(ioctl(fd, SIOCSIFFLAGS, &request) == 0);
    close(fd);
}

static void an_interface_is_refused(void)
{
    struct failure why;

    CHILD_ASSERT(unshare(CLONE_NEWNET) == 0);
    add_some_interface("eth7");
    CHILD_ASSERT(network_prepare(&why) == -EPERM);
    CHILD_ASSERT(strstr(why.text, "eth7 is there") || strstr(why.text, "veth0 is there"));
}

/* The kernel's own tunnels by name: harmless while down, refused once they are up. */
static void a_fallback_tunnel(void)
{
    struct failure why;

    prepare();
    CHILD_ASSERT(add_interface("tunl0", "bridge") == 0 || add_interface("tunl0", "dummy") == 0 ||
                 add_interface("tunl0", "ipip") == 0 || add_interface("tunl0", "ifb") == 0 ||
                 if_nametoindex("tunl0") != 0);
    CHILD_ASSERT(network_check_interfaces(&why) == 0);
    bring_up("tunl0");
    CHILD_ASSERT(network_check_interfaces(&why) == -EPERM);
    CHILD_ASSERT(strstr(why.text, "tunl0 is up"));
}

static void test_lo_and_nothing_else(void **state)
{
    (void)state;
    in_root_child(lo_and_nothing_else);
}

static void test_an_interface_is_refused(void **state)
{
    (void)state;
    in_root_child(an_interface_is_refused);
}

static void test_a_fallback_tunnel(void **state)
{
    (void)state;
    in_root_child(a_fallback_tunnel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lo_and_nothing_else),
        cmocka_unit_test(test_an_interface_is_refused),
        cmocka_unit_test(test_a_fallback_tunnel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
