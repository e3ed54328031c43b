/* The event loop of a sandbox. */
#ifndef QEMU_HARNESS_LAUNCHER_RUN_LOOP_H
#define QEMU_HARNESS_LAUNCHER_RUN_LOOP_H

#include "qemu-harness/launcher/run/sandbox.h"

/* Returns the exit status; at once after a start that a signal ended (-EINTR). */
int sandbox_run(struct sandbox *sandbox);

#endif
