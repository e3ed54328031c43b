/* Sets the routing rules of mirrored networking, as WSL does, for tcp and udp:
 *
 *     0: iif loopback0, and iif eth0   the local table: for packets that Windows forwards
 *     1: all other packets             table 127: 127.0.0.0/8 by the gateway on loopback0 (Windows)
 *     2: all                           the local table, which is rule 0 on other systems
 *
 * The ip of busybox cannot set a protocol in a rule. WSL's table 128, for the addresses shared with
 * Windows, is left out, because no Windows returns packets for them here.
 */
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/wsl-rig/rig.h"

#define TABLE_WINDOWS 127

struct rule {
    unsigned priority;
    const char *interface;  /* by which a packet came in; NULL: any */
    unsigned char protocol; /* 0: any */
    unsigned char table;
};

static const struct rule rules[] = {
    {0, "loopback0", IPPROTO_TCP, RT_TABLE_LOCAL},
    {0, "loopback0", IPPROTO_UDP, RT_TABLE_LOCAL},
    {0, "eth0", IPPROTO_TCP, RT_TABLE_LOCAL},
    {0, "eth0", IPPROTO_UDP, RT_TABLE_LOCAL},
    {1, NULL, IPPROTO_TCP, TABLE_WINDOWS},
    {1, NULL, IPPROTO_UDP, TABLE_WINDOWS},
    {2, NULL, 0, RT_TABLE_LOCAL},
};

struct request {
    struct nlmsghdr head;
    struct fib_rule_hdr rule;
    char attributes[256];
};

static void attribute(struct request *request, unsigned short type, const void *data, size_t length)
{
    struct rtattr *at = (struct rtattr *)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len));
    at->rta_type = type;
    at->rta_len = (unsigned short)RTA_LENGTH(length);
    memcpy(RTA_DATA(at), data, length);
    request->head.nlmsg_len =
        (uint32_t)(NLMSG_ALIGN(request->head.nlmsg_len) + RTA_ALIGN(at->rta_len));
}

static void change(int netlink, unsigned short type, unsigned short flags, const struct rule *rule)
{
    struct request request = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct fib_rule_hdr)),
                 .nlmsg_type = type,
                 .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags)},
        .rule = {.family = AF_INET, .table = rule->table, .action = FR_ACT_TO_TBL}};
    char answer[1024];
    attribute(&request, FRA_PRIORITY, &rule->priority, sizeof(rule->priority));
    if (rule->interface)
        attribute(&request, FRA_IIFNAME, rule->interface, strlen(rule->interface) + 1);
    if (rule->protocol)
        attribute(&request, FRA_IP_PROTO, &rule->protocol, sizeof(rule->protocol));
    ssize_t length = -1;
    if (send(netlink, &request, request.head.nlmsg_len, 0) > 0)
        length = recv(netlink, answer, sizeof(answer), 0);
    const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)answer;
    if (length < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) || head->nlmsg_type != NLMSG_ERROR)
        rig_die("netlink");
    errno = -((const struct nlmsgerr *)NLMSG_DATA(head))->error;
    if (errno)
        rig_die("rule");
}

int rig_rules(int argc, char **argv)
{
    const struct rule first = {0, NULL, 0, RT_TABLE_LOCAL};
    (void)argc;
    (void)argv;
    CLEANUP_FD int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (netlink < 0)
        rig_die("netlink");
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        change(netlink, RTM_NEWRULE, NLM_F_CREATE, &rules[i]);
    change(netlink, RTM_DELRULE, 0, &first);
    return 0;
}
