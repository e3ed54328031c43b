/* codev-init --wsl: the process outside the sandbox.
 *
 * `wsl.exe -u root --exec codev-init --wsl` starts it. It makes the agents' folder, starts the
 * sandbox's PID 1 in new namespaces, and then waits: it answers PID 1's questions (wsl_link.h),
 * keeps the outer agent running, passes signals on, and ends with PID 1. PID 1 dies with it,
 * whatever ends it, and everything of the sandbox dies with PID 1.
 */
#ifndef INIT_OUTSIDE_H
#define INIT_OUTSIDE_H

#include "init/sandbox.h"

/* Runs the process outside to its end and returns its exit status: 0 after `exit`, 1 after
 * `failed`. In the child that becomes the sandbox's PID 1 it calls `inside`, which does not
 * return. */
int outside_run(struct sandbox *sandbox, void (*inside)(void));

#endif
