/* Reads the firewall back and compares it with the batch that made it. */
#ifndef NFT_VERIFY_H
#define NFT_VERIFY_H

#include <stdint.h>

#include "common/os/failure.h"
#include "nft/batch.h"

struct mnl_socket;

/* The rule set's generation, which grows with every change in the network namespace. `sequence` is
 * taken for the request. 0 or a negative errno: -EINVAL where the kernel has no nf_tables, -EPERM. */
int verify_generation(const struct mnl_socket *channel, uint32_t *sequence, uint32_t *generation);

/* 0 when the kernel holds exactly the state that the batch describes, and nothing in the table besides;
 * then *generation is that of the comparison. -EBADMSG when it does not, with what differs; -EBUSY when
 * the rule set kept changing meanwhile; or another negative errno with a reason. */
int verify_state(const struct mnl_socket *channel, uint32_t *sequence, const struct batch *batch,
                 uint32_t *generation, struct failure *why);

#endif
