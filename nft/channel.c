/* Sends requests and reads answers. Calls that a signal interrupts are repeated, and datagrams that
 * do not come from the kernel are ignored. All other errors are returned to the caller, which
 * repeats the request.
 */
#include "nft/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "common/os/io.h"

#define REQUEST_BYTES_MAX 128

static int prepare(struct mnl_socket *channel, int group)
{
    int on = 1;
    if (mnl_socket_bind(channel, 0, MNL_SOCKET_AUTOPID) < 0)
        return -errno;
    /* leaves the copy of the request out of errors; kernels before 4.3 always send the copy */
    (void)mnl_socket_setsockopt(channel, NETLINK_CAP_ACK, &on, sizeof(on));
    if (group != 0 &&
        mnl_socket_setsockopt(channel, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
        return -errno;
    return io_set_nonblocking(mnl_socket_get_fd(channel));
}

int channel_open(struct mnl_socket **out, int group, struct failure *why)
{
    struct mnl_socket *channel = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
    if (!channel && (errno == EPROTONOSUPPORT || errno == EAFNOSUPPORT))
        return failure_set(why, errno,
                           "nfnetlink is missing in this kernel (CONFIG_NETFILTER_NETLINK)");
    if (!channel)
        return failure_errno(why, errno, "open a netlink socket");
    int result = prepare(channel, group);
    if (result < 0) {
        mnl_socket_close(channel);
        return failure_errno(why, -result, "prepare a netlink socket");
    }
    *out = channel;
    return 0;
}

int channel_send(const struct mnl_socket *channel, const void *bytes, size_t length)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t sent;
    do
        sent = sendto(mnl_socket_get_fd(channel), bytes, length, 0, (struct sockaddr *)&kernel,
                      sizeof(kernel));
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return -errno;
    return (size_t)sent == length ? 0 : -EMSGSIZE;
}

int channel_receive(const struct mnl_socket *channel, void *out, size_t size)
{
    for (;;) {
        struct sockaddr_nl from = {0};
        struct iovec vector = {.iov_base = out, .iov_len = size};
        struct msghdr message = {
            .msg_iov = &vector, .msg_iovlen = 1, .msg_name = &from, .msg_namelen = sizeof(from)};
        ssize_t length = recvmsg(mnl_socket_get_fd(channel), &message, MSG_DONTWAIT);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
        if (message.msg_namelen != sizeof(from) || from.nl_pid != 0)
            continue; /* from another process: only the kernel has port 0 */
        if ((message.msg_flags & MSG_TRUNC) != 0)
            return -EMSGSIZE;
        if (length > 0)
            return (int)length;
    }
}

static int send_request(const struct mnl_socket *channel, uint32_t sequence, uint16_t type,
                        uint16_t flags, const char *table)
{
    _Alignas(4) char bytes[REQUEST_BYTES_MAX] = {0};
    struct nlmsghdr *header = mnl_nlmsg_put_header(bytes);
    header->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
    header->nlmsg_flags = NLM_F_REQUEST | flags;
    header->nlmsg_seq = sequence;
    struct nfgenmsg *generic = mnl_nlmsg_put_extra_header(header, sizeof(*generic));
    generic->nfgen_family = table ? NFPROTO_INET : NFPROTO_UNSPEC;
    if (table && !mnl_attr_put_strz_check(header, sizeof(bytes), NFTA_TABLE_NAME, table))
        return -ENOSPC;
    return channel_send(channel, bytes, header->nlmsg_len);
}

/* The errno at the start of NLMSG_ERROR, or of the NLMSG_DONE that ends a dump. */
static int error_of(const struct nlmsghdr *message)
{
    int error = 0;
    if (mnl_nlmsg_get_payload_len(message) >= sizeof(error))
        memcpy(&error, mnl_nlmsg_get_payload(message), sizeof(error));
    return error;
}

/* Handles one message of an answer: 1 when it ends the answer, 0 when more follow, or a negative
 * errno. */
static int take_message(const struct nlmsghdr *message, uint16_t flags,
                        int (*handle)(const struct nlmsghdr *message, void *context), void *context)
{
    int result;
    if ((message->nlmsg_flags & NLM_F_DUMP_INTR) != 0)
        return -EINTR;
    if (message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE)
        return (result = error_of(message)) < 0 ? result : 1;
    if (message->nlmsg_type < NLMSG_MIN_TYPE)
        return 0;
    result = handle(message, context);
    return result < 0 ? result : (flags & NLM_F_DUMP) == 0;
}

/* Reads and drops the answers that are left of an earlier request that failed. */
static int discard_answers(const struct mnl_socket *channel)
{
    _Alignas(4) char bytes[CHANNEL_BYTES_MAX];
    int length;
    do
        length = channel_receive(channel, bytes, sizeof(bytes));
    while (length > 0 || length == -ENOBUFS || length == -EMSGSIZE);
    return length;
}

static int read_answer(const struct mnl_socket *channel, uint32_t sequence, uint16_t flags,
                       int (*handle)(const struct nlmsghdr *message, void *context), void *context)
{
    _Alignas(4) char bytes[CHANNEL_BYTES_MAX];
    for (;;) {
        int length = channel_receive(channel, bytes, sizeof(bytes));
        if (length <= 0)
            return length < 0 ? length : -ENOBUFS; /* the end of the answer was lost */
        const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)bytes;
        for (; mnl_nlmsg_ok(message, length); message = mnl_nlmsg_next(message, &length)) {
            if (message->nlmsg_seq != sequence)
                continue;
            int result = take_message(message, flags, handle, context);
            if (result != 0)
                return result < 0 ? result : 0;
        }
    }
}

int channel_request(const struct mnl_socket *channel, uint32_t sequence, uint16_t type,
                    uint16_t flags, const char *table,
                    int (*handle)(const struct nlmsghdr *message, void *context), void *context)
{
    int result = discard_answers(channel);
    if (result == 0)
        result = send_request(channel, sequence, type, flags, table);
    if (result == 0)
        result = read_answer(channel, sequence, flags, handle, context);
    return result;
}
