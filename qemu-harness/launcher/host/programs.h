/* Finds the programs and files of the launcher: named by an option, beside its executable, or in
 * PATH. */
#ifndef QEMU_HARNESS_LAUNCHER_HOST_PROGRAMS_H
#define QEMU_HARNESS_LAUNCHER_HOST_PROGRAMS_H

#include <limits.h>

#include "common/os/failure.h"

/* `chosen` (an option's value) unless NULL; else `beside`, relative to the folder of our
 * executable, unless NULL or absent; else `name` in PATH. 0, or -ENOENT with a reason that names
 * the program. */
int program_find(char out[PATH_MAX], const char *chosen, const char *beside, const char *name,
                 struct failure *why);

/* A path that leads to our executable. On Linux it is a link in /proc. As a protected path
 * (mount_check.h) it therefore also keeps /proc from being mounted for writing, with the memory of
 * the user's processes in it. */
extern const char program_own[];

/* A file relative to the folder of our executable. 0 or a negative errno. */
int program_beside(char out[PATH_MAX], const char *relative);

#endif
