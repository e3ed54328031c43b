/* Writes nf_tables expressions; each is a list element with a name and data. A match loads a
 * property of the packet into register 1 and compares it; when they differ, the kernel skips the
 * rest of the rule.
 *
 * Loopback is matched by interface index, not by name or type. In every network namespace the
 * kernel creates the loopback device first, with index 1 (LOOPBACK_IFINDEX, which net/core/dev.c
 * ensures). It can be neither deleted nor moved, and no other device can have its index. In
 * contrast, another device can get its name, and a tun device can claim the type ARPHRD_LOOPBACK.
 */
#include "nft/expression.h"

#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#define LOOPBACK_INDEX 1u

struct element {
    struct nlattr *list, *data;
};

static struct element element_begin(struct batch *batch, const char *name)
{
    struct element element = {.list = batch_nest_begin(batch, NFTA_LIST_ELEM)};
    batch_put_string(batch, NFTA_EXPR_NAME, name);
    element.data = batch_nest_begin(batch, NFTA_EXPR_DATA);
    return element;
}

static void element_end(struct batch *batch, struct element element)
{
    batch_nest_end(batch, element.data);
    batch_nest_end(batch, element.list);
}

/* Loads a property of the packet (`key`: NFT_META_...) into register 1. */
static void load_meta(struct batch *batch, uint32_t key)
{
    struct element element = element_begin(batch, "meta");
    batch_put_be32(batch, NFTA_META_KEY, key);
    batch_put_be32(batch, NFTA_META_DREG, NFT_REG_1);
    element_end(batch, element);
}

/* The rest of the rule applies only when register 1 holds these bytes. */
static void require_equal(struct batch *batch, const void *value, size_t length)
{
    struct element element = element_begin(batch, "cmp");
    batch_put_be32(batch, NFTA_CMP_SREG, NFT_REG_1);
    batch_put_be32(batch, NFTA_CMP_OP, NFT_CMP_EQ);
    struct nlattr *data = batch_nest_begin(batch, NFTA_CMP_DATA);
    batch_put_bytes(batch, NFTA_DATA_VALUE, value, length);
    batch_nest_end(batch, data);
    element_end(batch, element);
}

/* `meta oif 1`; the index is compared in the machine's byte order */
void match_leaving_by_loopback(struct batch *batch)
{
    uint32_t index = LOOPBACK_INDEX;
    load_meta(batch, NFT_META_OIF);
    require_equal(batch, &index, sizeof(index));
}

/* `meta iif 1` */
void match_arriving_by_loopback(struct batch *batch)
{
    uint32_t index = LOOPBACK_INDEX;
    load_meta(batch, NFT_META_IIF);
    require_equal(batch, &index, sizeof(index));
}

/* `meta l4proto tcp` */
void match_tcp(struct batch *batch)
{
    uint8_t protocol = IPPROTO_TCP;
    load_meta(batch, NFT_META_L4PROTO);
    require_equal(batch, &protocol, sizeof(protocol));
}

/* every packet that no earlier rule of the chain decided */
void match_any(struct batch *batch)
{
    (void)batch;
}

/* `accept`: the verdict register becomes NF_ACCEPT */
void verdict_accept(struct batch *batch)
{
    struct element element = element_begin(batch, "immediate");
    batch_put_be32(batch, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    struct nlattr *data = batch_nest_begin(batch, NFTA_IMMEDIATE_DATA);
    struct nlattr *verdict = batch_nest_begin(batch, NFTA_DATA_VERDICT);
    batch_put_be32(batch, NFTA_VERDICT_CODE, NF_ACCEPT);
    batch_nest_end(batch, verdict);
    batch_nest_end(batch, data);
    element_end(batch, element);
}

/* `reject with tcp reset` */
void verdict_reset(struct batch *batch)
{
    struct element element = element_begin(batch, "reject");
    batch_put_be32(batch, NFTA_REJECT_TYPE, NFT_REJECT_TCP_RST);
    element_end(batch, element);
}

/* `reject with icmpx admin-prohibited`: the right code for IPv4 and IPv6 */
void verdict_prohibited(struct batch *batch)
{
    uint8_t code = NFT_REJECT_ICMPX_ADMIN_PROHIBITED;
    struct element element = element_begin(batch, "reject");
    batch_put_be32(batch, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
    batch_put_bytes(batch, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
    element_end(batch, element);
}
