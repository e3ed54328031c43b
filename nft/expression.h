/* The expressions that the policy is made of: one function each.
 *
 * Attributes stand in the order in which the kernel dumps them (net/netfilter/nft_meta.c, nft_cmp.c,
 * nft_immediate.c, nft_reject.c), so that a dump can be compared byte for byte.
 */
#ifndef NFT_EXPRESSION_H
#define NFT_EXPRESSION_H

#include "nft/batch.h"

/* What packets a rule is about. */
void match_leaving_by_loopback(struct batch *batch);
void match_arriving_by_loopback(struct batch *batch);
void match_tcp(struct batch *batch);
void match_any(struct batch *batch);

/* What becomes of them. */
void verdict_accept(struct batch *batch);
void verdict_reset(struct batch *batch);      /* answered with a TCP reset */
void verdict_prohibited(struct batch *batch); /* answered with ICMP(v6) admin-prohibited */

#endif
