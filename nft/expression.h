/* The matches and verdicts of the policy's rules, one function each.
 *
 * Attributes are written in the order in which the kernel dumps them (net/netfilter/nft_meta.c,
 * nft_cmp.c, nft_immediate.c, nft_reject.c), so that a dump can be compared byte for byte.
 */
#ifndef NFT_EXPRESSION_H
#define NFT_EXPRESSION_H

#include "nft/batch.h"

/* Which packets a rule applies to. */
void match_leaving_by_loopback(struct batch *batch);
void match_arriving_by_loopback(struct batch *batch);
void match_tcp(struct batch *batch);
void match_any(struct batch *batch);

/* What happens to these packets. */
void verdict_accept(struct batch *batch);
void verdict_reset(struct batch *batch);      /* answered with a TCP reset */
void verdict_prohibited(struct batch *batch); /* answered with ICMP(v6) admin-prohibited */

#endif
