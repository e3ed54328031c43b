/* The start of a sandbox, as a table of named steps. */
#ifndef QEMU_HARNESS_LAUNCHER_RUN_START_H
#define QEMU_HARNESS_LAUNCHER_RUN_START_H

#include "qemu-harness/launcher/run/sandbox.h"

/* 0, or a negative errno: why->text is then `STEP: reason`. */
int sandbox_start(struct sandbox *sandbox, struct failure *why);

/* Reports why sandbox_start failed, behind the last messages of QEMU and the helpers. */
void sandbox_report_start(struct sandbox *sandbox, const struct failure *why);

#endif
