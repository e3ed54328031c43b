/* Sends a batch and learns what became of it. */
#ifndef NFT_COMMIT_H
#define NFT_COMMIT_H

#include <stdbool.h>

#include "common/os/failure.h"
#include "nft/batch.h"

struct mnl_socket;

/* The message that the kernel refused. */
struct commit_refusal {
    int error;      /* a positive errno; 0: none, the batch as such failed to be sent or answered */
    unsigned index; /* in the batch */
};

/* 0 when every message was acknowledged and nothing was refused; else a negative errno, and *refusal
 * tells of the first refusal. -ENOBUFS: acknowledgements are missing, the outcome is unknown. */
int commit_batch(const struct mnl_socket *channel, const struct batch *batch,
                 struct commit_refusal *refusal);

/* True when the same batch may succeed if it is sent again: the kernel asks for it, or answers got
 * lost. A batch replaces what is there, so doing it twice is harmless. */
bool commit_is_transient(int error);

/* Says in words why a batch was refused, and what to enable where a piece of the kernel is missing.
 * Returns `error`, a negative errno. */
int commit_explain(const struct batch *batch, const struct commit_refusal *refusal, int error,
                   struct failure *why);

#endif
