/* WSL: live listeners in the network that the sandbox shares with nobody, for the self-test to fail
 * to reach. */
#ifndef INIT_PROOF_WSL_WITNESS_H
#define INIT_PROOF_WSL_WITNESS_H

#include "init/wsl/wsl_link.h"

/* Listens over TCP and UDP, on one port for both, at 127.0.0.1, ::1, and the addresses that this
 * network would use to the outside, as far as there are any. 0, or a negative errno when not even
 * 127.0.0.1 works. */
int wsl_witness_open(struct wsl_witness witnesses[WSL_WITNESSES_MAX], uint32_t *count,
                     struct failure *why);

/* Closes them. Whether a datagram of the self-test's had come, although it was told that none was
 * sent. */
bool wsl_witness_close(void);

#endif
