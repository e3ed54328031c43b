/* Reads the firewall back from the kernel and compares it with the batch that created it. */
#ifndef NFT_VERIFY_H
#define NFT_VERIFY_H

#include <stdint.h>

#include "common/os/failure.h"
#include "nft/batch.h"

struct mnl_socket;

/* Reads the rule set's generation, which grows with every change in the network namespace. Uses
 * *sequence for the request and increments it. Returns 0 or a negative errno: -EINVAL where the
 * kernel has no nf_tables, -EPERM without CAP_NET_ADMIN. */
int verify_generation(const struct mnl_socket *channel, uint32_t *sequence, uint32_t *generation);

/* Returns 0 when the table holds exactly the objects that the batch describes; *generation is then
 * the generation that was compared. Returns -EBADMSG when they differ, with the difference in *why;
 * -EBUSY when the rule set kept changing meanwhile; or another negative errno with a reason. */
int verify_state(const struct mnl_socket *channel, uint32_t *sequence, const struct batch *batch,
                 uint32_t *generation, struct failure *why);

#endif
