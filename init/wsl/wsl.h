/* codev-init --wsl: the process outside the sandbox.
 *
 * `wsl.exe -u root --exec codev-init --wsl` starts it. It makes the agents' folder, starts the sandbox's PID 1 in new
 * namespaces, and then waits: it answers PID 1's questions (wsl_link.h), keeps the outer agent running, passes signals on,
 * and ends with PID 1. PID 1 dies with it, whatever ends it, and everything of the sandbox dies with PID 1.
 */
#ifndef INIT_WSL_WSL_H
#define INIT_WSL_WSL_H

#include "init/sandbox.h"

/* Runs the process outside to its end and returns its exit status: 0 after `exit`, 1 after `failed`. In the child that
 * becomes the sandbox's PID 1 it calls `inside`, which does not return. */
int wsl_run(struct sandbox *sandbox, void (*inside)(void));

/* PID 1 tells the process outside how far it came, in memory that both see: for the case that it is killed. */
void wsl_note_stage(enum stage_id stage);
void wsl_note_group(const char *id); /* the name of the cgroup that is to be removed */
void wsl_note_end(void);             /* the last event was queued: nothing more is to be said */

#endif
