/* Writes the messages of a batch with libmnl. The message being written is the last one: `length`
 * counts the finished messages before it, and its own length stands in its header. Each put checks
 * the room that is left; when it does not suffice, the error stays set, because a batch with an
 * attribute missing would be a different policy.
 */
#include "nft/batch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#define HEADERS_LENGTH (sizeof(struct nlmsghdr) + sizeof(struct nfgenmsg)) /* both aligned */

static struct nlmsghdr *current(struct batch *batch)
{
    return (struct nlmsghdr *)(void *)(batch->bytes + batch->messages[batch->count - 1].offset);
}

/* The bytes that the current message may take, from its start to the buffer's end. */
static size_t room(const struct batch *batch)
{
    return sizeof(batch->bytes) - batch->messages[batch->count - 1].offset;
}

static void finish_current(struct batch *batch)
{
    if (batch->count > 0)
        batch->length += current(batch)->nlmsg_len;
}

/* Starts a message with its two headers. `kind` is the complete nlmsg_type. */
static void open_message(struct batch *batch, uint16_t kind, uint16_t flags, uint8_t family,
                         uint16_t resource, struct batch_message message)
{
    if (batch->error != 0)
        return;
    finish_current(batch);
    if (batch->count == BATCH_MESSAGES_MAX ||
        sizeof(batch->bytes) - batch->length < HEADERS_LENGTH) {
        batch->error = -ENOSPC;
        return;
    }
    message.offset = (uint16_t)batch->length;
    batch->messages[batch->count++] = message;

    struct nlmsghdr *header = mnl_nlmsg_put_header(batch->bytes + batch->length);
    header->nlmsg_type = kind;
    header->nlmsg_flags = NLM_F_REQUEST | flags;
    header->nlmsg_seq = batch->sequence + batch->count - 1;
    struct nfgenmsg *generic = mnl_nlmsg_put_extra_header(header, sizeof(*generic));
    generic->nfgen_family = family;
    generic->version = NFNETLINK_V0;
    generic->res_id = htons(resource);
}

void batch_begin(struct batch *batch, uint32_t sequence)
{
    memset(batch, 0, sizeof(*batch));
    batch->sequence = sequence;
    struct batch_message message = {.label = "the batch", .type = NFNL_MSG_BATCH_BEGIN};
    open_message(batch, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, message);
}

void batch_message(struct batch *batch, uint16_t type, uint16_t flags, const char *label,
                   enum batch_feature feature)
{
    struct batch_message message = {.label = label, .type = type, .feature = feature};
    open_message(batch, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_ACK | flags,
                 NFPROTO_INET, 0, message);
}

void batch_state_begins(struct batch *batch)
{
    batch->state = batch->count;
}

void batch_put_bytes(struct batch *batch, uint16_t type, const void *value, size_t length)
{
    if (batch->error == 0 && !mnl_attr_put_check(current(batch), room(batch), type, length, value))
        batch->error = -ENOSPC;
}

void batch_put_string(struct batch *batch, uint16_t type, const char *value)
{
    batch_put_bytes(batch, type, value, strlen(value) + 1);
}

void batch_put_be32(struct batch *batch, uint16_t type, uint32_t value)
{
    uint32_t network = htonl(value);
    batch_put_bytes(batch, type, &network, sizeof(network));
}

struct nlattr *batch_nest_begin(struct batch *batch, uint16_t type)
{
    if (batch->error != 0)
        return NULL;
    struct nlattr *nest = mnl_nlmsg_get_payload_tail(current(batch));
    batch_put_bytes(batch, type, "", 0); /* not mnl_attr_nest_start, which sets NLA_F_NESTED */
    return batch->error == 0 ? nest : NULL;
}

void batch_nest_end(struct batch *batch, struct nlattr *nest)
{
    if (batch->error == 0 && nest)
        mnl_attr_nest_end(current(batch), nest);
}

int batch_end(struct batch *batch)
{
    struct batch_message message = {.label = "the batch's end", .type = NFNL_MSG_BATCH_END};
    open_message(batch, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, message);
    if (batch->error == 0)
        finish_current(batch);
    return batch->error;
}

const struct nlmsghdr *batch_at(const struct batch *batch, unsigned index)
{
    return (const struct nlmsghdr *)(const void *)(batch->bytes + batch->messages[index].offset);
}
