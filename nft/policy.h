/* The firewall's policy, as a table, and the batch that puts it in force. */
#ifndef NFT_POLICY_H
#define NFT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "nft/batch.h"

#define POLICY_TABLE "codev" /* in the inet family */

/* Writes the whole batch, which removes an existing table of this name and creates the policy's.
 * Returns 0, or -ENOSPC when the batch does not fit, which is a bug. */
int policy_write(struct batch *batch, uint32_t sequence, bool with_owner, bool with_reject);

#endif
