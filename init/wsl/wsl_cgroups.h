/* WSL: cgroups within those of the distribution.
 *
 *     OWN/codev/ID/init      PID 1
 *     OWN/codev/ID/server    what the user runs
 *     OWN/codev/ID/relay     the inner agent
 *
 * OWN is the group in which we were started, wherever cgroup2 is mounted. Nothing above it is
 * written.
 */
#ifndef INIT_WSL_WSL_CGROUPS_H
#define INIT_WSL_WSL_CGROUPS_H

#include "init/machine/cgroups.h"

/* The directory of the calling process's own group (open for reading), or a negative errno when
 * there is no cgroup2. */
int wsl_cgroups_find(void);

/* Stage `cgroups` in WSL, as PID 1. `own_fd` may be negative. What cannot be had is told in
 * `warning`, "" when all could. Afterwards the caller lives in a cgroup namespace whose root is ID,
 * mounted read-only at /sys/fs/cgroup. -EEXIST when a sandbox with this id is running. */
int wsl_cgroups_create(struct cgroups *groups, int own_fd, const struct boot_config *config,
                       struct failure *warning, struct failure *why);

/* Removes the groups of this id once they are empty, for which it waits a moment. Never fails. */
void wsl_cgroups_remove(int own_fd, const char *id);

#endif
