/* codev-init --wsl: the process outside the sandbox.
 *
 * `wsl.exe -u root --exec codev-init --wsl` starts it. It makes the folder of the relays' sockets,
 * starts the sandbox's PID 1 in new namespaces, and waits: it answers PID 1's requests
 * (wsl_link.h), keeps the outer relay running, passes signals on, and ends with PID 1. When it ends
 * for any reason, PID 1 is killed, and every process of the sandbox with it.
 */
#ifndef INIT_OUTSIDE_H
#define INIT_OUTSIDE_H

#include "init/sandbox.h"

/* Runs the process outside to its end and returns its exit status: 0 after `exit`, 1 after
 * `failed`. In the child that becomes the sandbox's PID 1 it calls `inside`, which does not
 * return. */
int outside_run(struct sandbox *sandbox, void (*inside)(void));

#endif
