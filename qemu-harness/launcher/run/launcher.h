/* The whole of codev-sandbox, for one machine. */
#ifndef QEMU_HARNESS_LAUNCHER_RUN_LAUNCHER_H
#define QEMU_HARNESS_LAUNCHER_RUN_LAUNCHER_H

#include "qemu-harness/launcher/machine/machine.h"

/* Runs what the command line says. Returns the exit status. */
int launcher_run(int argc, char **argv, const struct machine *machine);

#endif
