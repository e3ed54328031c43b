/* Sends a batch to the kernel and reports whether it was applied, and if not, why. */
#ifndef NFT_COMMIT_H
#define NFT_COMMIT_H

#include <stdbool.h>

#include "common/os/failure.h"
#include "nft/batch.h"

struct mnl_socket;

/* The message that the kernel refused. */
struct commit_refusal {
    int error;      /* a positive errno; 0: no message was refused, sending or receiving failed */
    unsigned index; /* of the message in the batch */
};

/* Returns 0 when every message was acknowledged and none was refused; else a negative errno, with
 * the first refusal in *refusal. -ENOBUFS: acknowledgements are missing, and whether the batch was
 * applied is not known. */
int commit_batch(const struct mnl_socket *channel, const struct batch *batch,
                 struct commit_refusal *refusal);

/* True when the same batch may succeed if it is sent again: the kernel asks for that, or answers
 * were lost. A batch replaces the table that exists, so sending it twice is harmless. */
bool commit_is_transient(int error);

/* Puts in *why for which reason a batch was refused and, when the kernel lacks a feature, the
 * option that enables it. Returns `error`, a negative errno. */
int commit_explain(const struct batch *batch, const struct commit_refusal *refusal, int error,
                   struct failure *why);

#endif
