/* rig unrule PID: does the worst that a privileged hook can do. It gets the netlink sockets of a
 * sandbox's PID 1 (pidfd_getfd) and deletes the table inet codev through them. For the kernel this
 * is the owner of the table, so the owner flag does not prevent it. Prints the answer on each
 * socket: the errno of the delete, 0 for success. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/wsl-rig/rig.h"

#define DESCRIPTORS 256
#define TABLE "codev"
#define BATCH_MAX 256

struct batch {
    char bytes[BATCH_MAX];
    size_t length;
};

static void add_message(struct batch *batch, uint16_t type, uint16_t flags, const char *table)
{
    struct nlmsghdr *head = (struct nlmsghdr *)(void *)(batch->bytes + batch->length);
    struct nfgenmsg *generic = NLMSG_DATA(head);
    bool edge = type == NFNL_MSG_BATCH_BEGIN || type == NFNL_MSG_BATCH_END;
    *head = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(sizeof(*generic)),
                              .nlmsg_type = type,
                              .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)};
    *generic = (struct nfgenmsg){.nfgen_family = edge ? AF_UNSPEC : NFPROTO_INET};
    if (edge)
        generic->res_id = htons(NFNL_SUBSYS_NFTABLES);
    if (table) {
        struct nlattr *name = (struct nlattr *)(void *)((char *)head + head->nlmsg_len);
        *name = (struct nlattr){.nla_type = NFTA_TABLE_NAME,
                                .nla_len = (uint16_t)(NLA_HDRLEN + strlen(table) + 1)};
        memcpy((char *)name + NLA_HDRLEN, table, strlen(table) + 1);
        head->nlmsg_len += NLA_ALIGN(name->nla_len);
    }
    batch->length += NLMSG_ALIGN(head->nlmsg_len);
}

/* Without NLM_F_ACK, because the owner of the socket does not expect an answer; errors are sent
 * anyway. */
static void delete_table(int fd, int number)
{
    struct batch batch = {.length = 0};
    char answer[1024];
    int error = 0;
    add_message(&batch, NFNL_MSG_BATCH_BEGIN, 0, NULL);
    add_message(&batch, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE, 0, TABLE);
    add_message(&batch, NFNL_MSG_BATCH_END, 0, NULL);
    if (send(fd, batch.bytes, batch.length, 0) < 0)
        rig_die("send");
    ssize_t length = recv(fd, answer, sizeof(answer), MSG_DONTWAIT | MSG_PEEK);
    const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)answer;
    if (length > (ssize_t)sizeof(*head) && head->nlmsg_type == NLMSG_ERROR &&
        recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
        error = -((const struct nlmsgerr *)NLMSG_DATA(head))->error;
    printf("descriptor %d: %d\n", number, error);
}

static bool is_netfilter(int fd)
{
    int domain = 0, protocol = 0;
    socklen_t size = sizeof(domain), other = sizeof(protocol);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK &&
           getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &other) == 0 &&
           protocol == NETLINK_NETFILTER;
}

int rig_unrule(int argc, char **argv)
{
    if (argc != 2)
        return 64;
    CLEANUP_FD int process = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
    if (process < 0)
        rig_die(argv[1]);
    for (int number = 0; number < DESCRIPTORS; number++) {
        CLEANUP_FD int fd = (int)syscall(SYS_pidfd_getfd, process, number, 0);
        if (fd >= 0 && is_netfilter(fd))
            delete_table(fd, number);
    }
    return 0;
}
