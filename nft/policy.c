/* The chains and rules of the firewall. Each chain drops the packets that no rule accepts, so the
 * rules that reject only decide whether the sender of a refused packet gets an answer. Where the
 * kernel has no reject they are left out, and the same packets are refused.
 */
#include "nft/policy.h"

#include <assert.h>
#include <stddef.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>

#include "common/os/cleanup.h"
#include "nft/expression.h"

enum policy_chain { CHAIN_OUTPUT, CHAIN_INPUT, CHAIN_FORWARD, CHAIN_COUNT };

struct policy_chain_row {
    const char *name, *label;
    uint32_t hook;
};

static const struct policy_chain_row chains[] = {
    [CHAIN_OUTPUT] = {"output", "chain output", NF_INET_LOCAL_OUT},
    [CHAIN_INPUT] = {"input", "chain input", NF_INET_LOCAL_IN},
    [CHAIN_FORWARD] = {"forward", "chain forward", NF_INET_FORWARD},
};
static_assert(ARRAY_LENGTH(chains) == CHAIN_COUNT, "a row for every chain");

struct policy_rule {
    enum policy_chain chain;
    void (*match)(struct batch *batch);
    void (*verdict)(struct batch *batch);
    enum batch_feature feature;
    const char *label;
};

/* In the order of the chains above, which is the order of the kernel's dump. */
static const struct policy_rule rules[] = {
    /* the sandbox's own processes talk to each other, and to the relay, over lo */
    {CHAIN_OUTPUT, match_leaving_by_loopback, verdict_accept, FEATURE_NONE,
     "the rule that accepts output over lo"},
    /* all other output is refused with an answer, so that a program fails at once and does not
     * wait */
    {CHAIN_OUTPUT, match_tcp, verdict_reset, FEATURE_REJECT,
     "the rule that resets other TCP output"},
    {CHAIN_OUTPUT, match_any, verdict_prohibited, FEATURE_REJECT,
     "the rule that prohibits other output"},
    /* only packets from lo come in; others are dropped without an answer */
    {CHAIN_INPUT, match_arriving_by_loopback, verdict_accept, FEATURE_NONE,
     "the rule that accepts input from lo"},
    /* the chain `forward` has no rule: nothing is forwarded */
};

#define FILTER_PRIORITY 0

static void write_table(struct batch *batch, uint16_t type, const char *label)
{
    batch_message(batch, type, type == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0, label, FEATURE_NONE);
    batch_put_string(batch, NFTA_TABLE_NAME, POLICY_TABLE);
}

static void write_own_table(struct batch *batch, bool with_owner)
{
    batch_message(batch, NFT_MSG_NEWTABLE, NLM_F_CREATE, "table inet " POLICY_TABLE,
                  with_owner ? FEATURE_OWNER : FEATURE_NONE);
    batch_put_string(batch, NFTA_TABLE_NAME, POLICY_TABLE);
    batch_put_be32(batch, NFTA_TABLE_FLAGS, with_owner ? NFT_TABLE_F_OWNER : 0);
}

static void write_chain(struct batch *batch, const struct policy_chain_row *chain)
{
    batch_message(batch, NFT_MSG_NEWCHAIN, NLM_F_CREATE, chain->label, FEATURE_NONE);
    batch_put_string(batch, NFTA_CHAIN_TABLE, POLICY_TABLE);
    batch_put_string(batch, NFTA_CHAIN_NAME, chain->name);
    struct nlattr *hook = batch_nest_begin(batch, NFTA_CHAIN_HOOK);
    batch_put_be32(batch, NFTA_HOOK_HOOKNUM, chain->hook);
    batch_put_be32(batch, NFTA_HOOK_PRIORITY, FILTER_PRIORITY);
    batch_nest_end(batch, hook);
    batch_put_be32(batch, NFTA_CHAIN_POLICY, NF_DROP);
    batch_put_string(batch, NFTA_CHAIN_TYPE, "filter");
}

static void write_rule(struct batch *batch, const struct policy_rule *rule)
{
    batch_message(batch, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, rule->label, rule->feature);
    batch_put_string(batch, NFTA_RULE_TABLE, POLICY_TABLE);
    batch_put_string(batch, NFTA_RULE_CHAIN, chains[rule->chain].name);
    struct nlattr *expressions = batch_nest_begin(batch, NFTA_RULE_EXPRESSIONS);
    rule->match(batch);
    rule->verdict(batch);
    batch_nest_end(batch, expressions);
}

int policy_write(struct batch *batch, uint32_t sequence, bool with_owner, bool with_reject)
{
    batch_begin(batch, sequence);
    /* NFT_MSG_DELTABLE fails when there is no table, so one is created first if it is absent */
    write_table(batch, NFT_MSG_NEWTABLE, "table inet " POLICY_TABLE);
    write_table(batch, NFT_MSG_DELTABLE, "the old table inet " POLICY_TABLE);
    batch_state_begins(batch);
    write_own_table(batch, with_owner);
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        write_chain(batch, &chains[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (rules[i].feature != FEATURE_REJECT || with_reject)
            write_rule(batch, &rules[i]);
    return batch_end(batch);
}
