/* An empty root directory. */
#ifndef INIT_SYSTEM_EMPTY_ROOT_H
#define INIT_SYSTEM_EMPTY_ROOT_H

#include "common/os/failure.h"

/* Gives the calling process a mount namespace of its own whose only mount is an empty, read-only
 * tmpfs, as root and working directory. Open descriptors stay usable. Needs CAP_SYS_ADMIN. 0 or a
 * negative errno; after a failure the process must end. */
int empty_root_enter(struct failure *why);

/* In a mount namespace that the caller has already for itself, makes this detached mount the root
 * and the only mount. */
int empty_root_pivot(int root, struct failure *why);

#endif
