/* The ends of a sandbox. None of these functions returns: PID 1 may not exit, so each of them
 * powers the machine off. */
#ifndef INIT_SHUTDOWN_H
#define INIT_SHUTDOWN_H

#include <stdnoreturn.h>

#include "init/sandbox.h"

/* The end after the server's: relay, mounts, sync, `exit`, its acknowledgement, power-off. */
noreturn void sandbox_end(struct sandbox *sandbox);

/* The end after a failure: `failed` with the stage and the text, then everything is killed,
 * unmounted and synced, the acknowledgement is awaited, power-off. Without a control channel the
 * reason is written to the console. */
noreturn void sandbox_fail(struct sandbox *sandbox, enum stage_id stage, const struct failure *why);

/* Writes a line to the console and powers off. */
noreturn void sandbox_abort(const char *text);

/* WSL: the functions above exit instead of powering off: status 0 after `exit`, 1 after a
 * failure. */
void shutdown_by_exit(void);

/* After this a fault of init itself (SIGSEGV, SIGBUS ...) powers off instead of crashing the
 * kernel. */
void shutdown_guard_faults(void);

#endif
