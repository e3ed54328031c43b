/* Signals to this program, and what each does to the sandbox. */
#ifndef QEMU_HARNESS_LAUNCHER_RUN_SIGNALS_H
#define QEMU_HARNESS_LAUNCHER_RUN_SIGNALS_H

#include "qemu-harness/launcher/run/sandbox.h"

/* Blocks the signals; sandbox->signals is readable when one arrives. 0 or a negative errno. */
int signals_watch(struct sandbox *sandbox, struct failure *why);

void signals_handle(struct sandbox *sandbox);

#endif
