/* The ends of a sandbox. None of these functions returns: PID 1 may not exit, and behind each of
 * them the machine is off. */
#ifndef INIT_SHUTDOWN_H
#define INIT_SHUTDOWN_H

#include <stdnoreturn.h>

#include "init/sandbox.h"

/* The orderly end after the server's: agent, mounts, sync, `exit`, its acknowledgement,
 * power-off. */
noreturn void sandbox_end(struct sandbox *sandbox);

/* The end for a reason: `failed` with the stage and the text, then everything is killed, unmounted
 * and synced, its acknowledgement is awaited, power-off. Before there is a channel the reason goes
 * to the console. */
noreturn void sandbox_fail(struct sandbox *sandbox, enum stage_id stage, const struct failure *why);

/* Nothing can be told to anyone any more: a line on the console, then power-off. */
noreturn void sandbox_abort(const char *text);

/* WSL: the ends below are an exit of PID 1, with status 0 after `exit` and 1 after a failure. */
void shutdown_by_exit(void);

/* A fault of init itself (SIGSEGV and its kin) powers off instead of crashing the kernel. */
void shutdown_guard_faults(void);

#endif
