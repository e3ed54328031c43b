/* WSL: live listeners in the distribution's network, which the self-test must not reach. */
#ifndef INIT_PROOF_WSL_WITNESS_H
#define INIT_PROOF_WSL_WITNESS_H

#include "init/wsl/wsl_link.h"

/* Listens over TCP and UDP, on the same port, at 127.0.0.1, ::1 and the source addresses of packets
 * to the outside, where these exist. 0, or a negative errno when 127.0.0.1 does not work. */
int wsl_witness_open(struct wsl_witness witnesses[WSL_WITNESSES_MAX], uint32_t *count,
                     struct failure *why);

/* Closes them. True when one had received a datagram of the self-test. */
bool wsl_witness_close(void);

#endif
