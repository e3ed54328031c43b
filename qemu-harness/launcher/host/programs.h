/* Where our programs and files lie: named by an option, beside our own executable, or in PATH. */
#ifndef QEMU_HARNESS_LAUNCHER_HOST_PROGRAMS_H
#define QEMU_HARNESS_LAUNCHER_HOST_PROGRAMS_H

#include <limits.h>

#include "common/os/failure.h"

/* `chosen` (an option's value) if not NULL; else `beside`, relative to the folder of our executable, if
 * not NULL and there; else `name` in PATH. 0, or -ENOENT saying what was looked for. */
int program_find(char out[PATH_MAX], const char *chosen, const char *beside, const char *name,
                 struct failure *why);

/* A file relative to the folder of our executable. 0 or a negative errno. */
int program_beside(char out[PATH_MAX], const char *relative);

#endif
