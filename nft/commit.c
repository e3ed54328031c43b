/* Sends a batch and reads the kernel's answers to it.
 *
 * The kernel sends one acknowledgement or error for each message that asked for one, in the order
 * of the messages. Acknowledgements for all of them do not mean that the batch was applied: when
 * the commit fails, an error for BATCH_BEGIN comes before them (net/netfilter/nfnetlink.c). All
 * answers are queued when sendto(2) returns, so reading ends when none is left. The answers to
 * BATCH_BEGIN and BATCH_END, which only newer kernels send, therefore need no special case.
 */
#include "nft/commit.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "nft/channel.h"

#ifndef ERESTART
#define ERESTART 85
#endif

/* Bit i: the message at index i was acknowledged. */
typedef uint32_t acknowledged_set;
static_assert(BATCH_MESSAGES_MAX <= 32, "a bit for each message");

static void note_answer(const struct batch *batch, const struct nlmsghdr *message,
                        acknowledged_set *acknowledged, struct commit_refusal *refusal)
{
    uint32_t index = message->nlmsg_seq - batch->sequence;
    int error;
    if (message->nlmsg_type != NLMSG_ERROR || index >= batch->count ||
        mnl_nlmsg_get_payload_len(message) < sizeof(error))
        return;
    memcpy(&error, mnl_nlmsg_get_payload(message), sizeof(error));
    if (error == 0)
        *acknowledged |= (acknowledged_set)1 << index;
    else if (refusal->error == 0)
        *refusal = (struct commit_refusal){.error = -error, .index = index};
}

static bool all_acknowledged(const struct batch *batch, acknowledged_set acknowledged)
{
    for (unsigned i = 0; i < batch->count; i++)
        if ((batch_at(batch, i)->nlmsg_flags & NLM_F_ACK) != 0 && (acknowledged >> i & 1) == 0)
            return false;
    return true;
}

int commit_batch(const struct mnl_socket *channel, const struct batch *batch,
                 struct commit_refusal *refusal)
{
    _Alignas(4) char bytes[CHANNEL_BYTES_MAX];
    acknowledged_set acknowledged = 0;
    *refusal = (struct commit_refusal){0};
    int length, lost = 0;
    int result = channel_send(channel, batch->bytes, batch->length);
    if (result < 0)
        return result;
    while ((length = channel_receive(channel, bytes, sizeof(bytes))) != 0) {
        if (length == -ENOBUFS) { /* reported once; the answers queued before are still there */
            lost = length;
            continue;
        }
        if (length < 0)
            return length;
        const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)bytes;
        for (; mnl_nlmsg_ok(message, length); message = mnl_nlmsg_next(message, &length))
            note_answer(batch, message, &acknowledged, refusal);
    }
    if (refusal->error != 0)
        return -refusal->error;
    return lost != 0 || !all_acknowledged(batch, acknowledged) ? -ENOBUFS : 0;
}

bool commit_is_transient(int error)
{
    return error == -ERESTART || error == -EINTR || error == -EAGAIN || error == -ENOBUFS;
}

static int explain_table(const char *label, int error, struct failure *why)
{
    if (error == -EOPNOTSUPP || error == -EAFNOSUPPORT)
        return failure_set(why, -error,
                           "nf_tables has no inet family in this kernel (CONFIG_NF_TABLES_INET)");
    if (error == -EPERM)
        return failure_set(why, -error, "%s belongs to another process, which must end first",
                           label);
    return failure_errno(why, -error, "%s", label);
}

int commit_explain(const struct batch *batch, const struct commit_refusal *refusal, int error,
                   struct failure *why)
{
    if (refusal->error == 0)
        return failure_errno(why, -error, "send the firewall to the kernel");
    const struct batch_message *message = &batch->messages[refusal->index];
    switch (message->type) {
    case NFNL_MSG_BATCH_BEGIN:
    case NFNL_MSG_BATCH_END:
        if (error == -EPERM)
            return failure_set(why, EPERM, "CAP_NET_ADMIN is missing in this network namespace");
        if (error == -EOPNOTSUPP || error == -EINVAL)
            return failure_set(why, -error,
                               "nf_tables is missing in this kernel (CONFIG_NF_TABLES)");
        break;
    case NFT_MSG_NEWTABLE:
    case NFT_MSG_DELTABLE:
        return explain_table(message->label, error, why);
    case NFT_MSG_NEWCHAIN:
        if (error == -ENOENT || error == -EOPNOTSUPP)
            return failure_set(why, -error,
                               "%s: nf_tables has no filter chains for the inet family in this "
                               "kernel (CONFIG_NF_TABLES_INET)",
                               message->label);
        break;
    case NFT_MSG_NEWRULE:
        if (error == -ENOENT || error == -EOPNOTSUPP)
            return failure_set(why, -error,
                               "%s: meta, cmp or immediate is missing in this kernel's nf_tables "
                               "(CONFIG_NF_TABLES; before Linux 4.20 CONFIG_NFT_META too)",
                               message->label);
        break;
    }
    return failure_errno(why, -error, "%s", message->label);
}
