/* What the agent gives up itself. codev-init starts it without privilege already: own account, no
 * capability, no_new_privs, limits, own cgroup, an empty root. */
#ifndef AGENT_CONFINE_H
#define AGENT_CONFINE_H

#include "common/os/failure.h"

/* Before any secret is read: not dumpable (no ptrace, no /proc/PID/mem or fd for the same
 * account), no core file, killed when the parent dies. 0 or a negative errno with a reason. */
int confine_process(struct failure *why);

/* When all is set up: only the system calls that serving needs (the list stands in the file),
 * for good. A refused call ends the process with a message on descriptor 2. 0 or a negative
 * errno with a reason. A build with sanitizers, which need calls of their own, leaves this step
 * out. */
int confine_system_calls(struct failure *why);

#endif
