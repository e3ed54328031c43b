/* A root directory in which there is nothing. */
#ifndef INIT_SYSTEM_EMPTY_ROOT_H
#define INIT_SYSTEM_EMPTY_ROOT_H

#include "common/os/failure.h"

/* Gives the calling process a mount namespace of its own whose only mount is an empty, read-only
 * tmpfs, and makes it the root and working directory. What it holds open stays usable (a program is
 * executed from its descriptor afterwards). Needs CAP_SYS_ADMIN. 0 or a negative errno; after a
 * failure the process must end. */
int empty_root_enter(struct failure *why);

/* The second half: in a mount namespace that is the caller's own already, makes this detached mount
 * the root and the only mount. */
int empty_root_pivot(int root, struct failure *why);

#endif
