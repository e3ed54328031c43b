/* The firewall's policy, as a table, and the batch that puts it in force. */
#ifndef NFT_POLICY_H
#define NFT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "nft/batch.h"

#define POLICY_TABLE "codev" /* in the inet family */

/* Writes the whole batch: a table of this name that exists is removed, and ours is made. 0 or a negative
 * errno (the batch does not fit: a fault of ours). */
int policy_write(struct batch *batch, uint32_t sequence, bool with_owner, bool with_reject);

#endif
