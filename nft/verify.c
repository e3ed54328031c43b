/* Compares the kernel's table with the batch that was sent. The kernel's three dumps (tables,
 * chains, rules) list the objects of the table in the order in which they were created, which is
 * the order of the batch. So dump and batch are compared side by side, message by message and
 * attribute by attribute. Each attribute that was sent must come back with the same type, length
 * and bytes, in the same order. Other attributes may only be those that the kernel assigns
 * (handles, positions, use counts). The table's use count must equal its number of chains, which
 * shows that no set, map or object was added.
 *
 * The dumps are separate requests, so the generation is read before and after them; when it
 * changed, all dumps are read again.
 */
#include "nft/verify.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "common/os/cleanup.h"
#include "nft/channel.h"
#include "nft/policy.h"

#define ROUNDS_MAX 16 /* times that a rule set which keeps changing is read */
#define TABLE_NAME_ATTRIBUTE 1

static_assert(NFTA_TABLE_NAME == TABLE_NAME_ATTRIBUTE && NFTA_CHAIN_TABLE == TABLE_NAME_ATTRIBUTE &&
                  NFTA_RULE_TABLE == TABLE_NAME_ATTRIBUTE,
              "every object names its table in the same attribute");

struct walk {
    const struct batch *batch;
    unsigned next; /* index of the message that the next dumped object must equal */
    uint16_t type; /* NFT_MSG_NEW..., of the dump being read */
    uint32_t port; /* of our socket, which owns the table */
    struct failure *why;
};

/* The attributes that the kernel adds to those that were sent, and which value each must have. */
enum demand { DEMAND_NOTHING, DEMAND_CHAIN_COUNT, DEMAND_OUR_PORT, DEMAND_BASE_CHAIN };

static const struct addition {
    uint16_t message, attribute;
    enum demand demand;
} additions[] = {
    {NFT_MSG_NEWTABLE, NFTA_TABLE_HANDLE, DEMAND_NOTHING},
    {NFT_MSG_NEWTABLE, NFTA_TABLE_PAD, DEMAND_NOTHING},
    {NFT_MSG_NEWTABLE, NFTA_TABLE_USE, DEMAND_CHAIN_COUNT},
    {NFT_MSG_NEWTABLE, NFTA_TABLE_OWNER, DEMAND_OUR_PORT},
    {NFT_MSG_NEWCHAIN, NFTA_CHAIN_HANDLE, DEMAND_NOTHING},
    {NFT_MSG_NEWCHAIN, NFTA_CHAIN_PAD, DEMAND_NOTHING},
    {NFT_MSG_NEWCHAIN, NFTA_CHAIN_USE, DEMAND_NOTHING},
    {NFT_MSG_NEWCHAIN, NFTA_CHAIN_FLAGS, DEMAND_BASE_CHAIN},
    {NFT_MSG_NEWRULE, NFTA_RULE_HANDLE, DEMAND_NOTHING},
    {NFT_MSG_NEWRULE, NFTA_RULE_PAD, DEMAND_NOTHING},
    {NFT_MSG_NEWRULE, NFTA_RULE_POSITION, DEMAND_NOTHING},
};

static uint32_t count_of(const struct batch *batch, uint16_t type)
{
    uint32_t count = 0;
    for (unsigned i = batch->state; i < batch->count; i++)
        count += batch->messages[i].type == type;
    return count;
}

static bool meets(const struct walk *walk, enum demand demand, const struct nlattr *attribute)
{
    if (demand == DEMAND_NOTHING)
        return true;
    if (mnl_attr_get_payload_len(attribute) != sizeof(uint32_t))
        return false;
    uint32_t value = ntohl(mnl_attr_get_u32(attribute));
    switch (demand) {
    case DEMAND_NOTHING:
        return true;
    case DEMAND_CHAIN_COUNT:
        return value == count_of(walk->batch, NFT_MSG_NEWCHAIN);
    case DEMAND_OUR_PORT:
        return value == walk->port;
    case DEMAND_BASE_CHAIN:
        return value == NFT_CHAIN_BASE;
    }
    return false;
}

static bool is_allowed_addition(const struct walk *walk, const struct nlattr *attribute)
{
    for (size_t i = 0; i < ARRAY_LENGTH(additions); i++)
        if (additions[i].message == walk->type && additions[i].attribute == attribute->nla_type)
            return meets(walk, additions[i].demand, attribute);
    return false;
}

static bool same_message(const struct walk *walk, const struct nlmsghdr *sent,
                         const struct nlmsghdr *dumped)
{
    const struct nlattr *expected = mnl_nlmsg_get_payload_offset(sent, sizeof(struct nfgenmsg));
    const char *end = mnl_nlmsg_get_payload_tail(sent);
    struct nlattr *found;
    mnl_attr_for_each(found, dumped, sizeof(struct nfgenmsg))
    {
        if ((const char *)expected < end && expected->nla_len == found->nla_len &&
            memcmp(expected, found, found->nla_len) == 0)
            expected = mnl_attr_next(expected);
        else if (!is_allowed_addition(walk, found))
            return false;
    }
    return (const char *)expected == end;
}

/* Whether a dumped object lies in our table, whose name is its first attribute. */
static bool is_in_our_table(const struct nlmsghdr *message)
{
    const struct nfgenmsg *generic = mnl_nlmsg_get_payload(message);
    size_t length = mnl_nlmsg_get_payload_len(message);
    if (length < sizeof(*generic) || generic->nfgen_family != NFPROTO_INET)
        return false;
    const struct nlattr *name = mnl_nlmsg_get_payload_offset(message, sizeof(*generic));
    return mnl_attr_ok(name, (int)(length - sizeof(*generic))) &&
           mnl_attr_get_type(name) == TABLE_NAME_ATTRIBUTE &&
           mnl_attr_get_payload_len(name) == sizeof(POLICY_TABLE) &&
           memcmp(mnl_attr_get_payload(name), POLICY_TABLE, sizeof(POLICY_TABLE)) == 0;
}

static int compare_dumped(const struct nlmsghdr *message, void *context)
{
    struct walk *walk = context;
    if (message->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | walk->type) ||
        !is_in_our_table(message))
        return 0;
    const struct batch_message *expected = &walk->batch->messages[walk->next];
    if (expected->type != walk->type)
        return failure_set(walk->why, EBADMSG, "something was added to table inet " POLICY_TABLE);
    if (!same_message(walk, batch_at(walk->batch, walk->next), message))
        return failure_set(walk->why, EBADMSG, "%s is not as it was loaded", expected->label);
    walk->next++;
    return 0;
}

static int take_generation(const struct nlmsghdr *message, void *context)
{
    struct nlattr *attribute;
    mnl_attr_for_each(attribute, message, sizeof(struct nfgenmsg))
    {
        if (mnl_attr_get_type(attribute) == NFTA_GEN_ID &&
            mnl_attr_get_payload_len(attribute) == sizeof(uint32_t)) {
            *(uint32_t *)context = ntohl(mnl_attr_get_u32(attribute));
            return 0;
        }
    }
    return -EPROTO;
}

int verify_generation(const struct mnl_socket *channel, uint32_t *sequence, uint32_t *generation)
{
    return channel_request(channel, (*sequence)++, NFT_MSG_GETGEN, 0, NULL, take_generation,
                           generation);
}

/* Reads and compares all objects once. A change in the meantime is not noticed here. */
static int compare_all(const struct mnl_socket *channel, uint32_t *sequence, struct walk *walk)
{
    static const struct {
        uint16_t request, answer;
    } dumps[] = {
        {NFT_MSG_GETTABLE, NFT_MSG_NEWTABLE},
        {NFT_MSG_GETCHAIN, NFT_MSG_NEWCHAIN},
        {NFT_MSG_GETRULE, NFT_MSG_NEWRULE},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(dumps); i++) {
        walk->type = dumps[i].answer;
        int result = channel_request(channel, (*sequence)++, dumps[i].request, NLM_F_DUMP,
                                     POLICY_TABLE, compare_dumped, walk);
        if (result < 0)
            return result;
        const struct batch_message *expected = &walk->batch->messages[walk->next];
        if (expected->type == walk->type)
            return failure_set(walk->why, EBADMSG, "%s is missing", expected->label);
    }
    return 0;
}

int verify_state(const struct mnl_socket *channel, uint32_t *sequence, const struct batch *batch,
                 uint32_t *generation, struct failure *why)
{
    int result = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        uint32_t before = 0, after = 0;
        struct walk walk = {.batch = batch,
                            .next = batch->state,
                            .port = mnl_socket_get_portid(channel),
                            .why = why};
        result = verify_generation(channel, sequence, &before);
        if (result == 0)
            result = compare_all(channel, sequence, &walk);
        int differs = result == -EBADMSG ? result : 0;
        if (result == 0 || differs != 0)
            result = verify_generation(channel, sequence, &after);
        if (result == 0 && before == after && differs != 0)
            return differs;
        if (result == 0 && before == after) {
            *generation = after;
            return 0;
        }
        if (result < 0 && result != -EINTR && result != -ENOBUFS)
            return failure_errno(why, -result, "read the firewall back");
    }
    return failure_set(why, EBUSY, "the rule set kept changing while the firewall was read back");
}
