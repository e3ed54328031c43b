/* The rights that the relay drops by itself. codev-init has already started it without privileges:
 * with an account of its own, no capabilities, no_new_privs, limits, a cgroup of its own and an
 * empty root. */
#ifndef AGENT_CONFINE_H
#define AGENT_CONFINE_H

#include "common/os/failure.h"

/* Makes the process not dumpable (other processes of the account can neither ptrace it nor open its
 * /proc/PID/mem and /proc/PID/fd), without core files, and killed when its parent ends. To be
 * called before a secret is read. Returns 0, or a negative errno with a reason. */
int confine_process(struct failure *why);

/* Permits only the system calls that the running relay needs (the list in confine.c), irreversibly.
 * To be called when the set-up is complete. Another call ends the process with a message on
 * descriptor 2. Returns 0, or a negative errno with a reason. Does nothing in a build with
 * sanitizers, which need more system calls. */
int confine_system_calls(struct failure *why);

#endif
