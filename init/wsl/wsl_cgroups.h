/* WSL: cgroups within those of the distribution.
 *
 *     OWN/codev/ID/init      PID 1
 *     OWN/codev/ID/server    the server and all it starts
 *     OWN/codev/ID/relay     the inner relay
 *
 * OWN is the group in which codev-init was started, wherever cgroup2 is mounted. Nothing above OWN
 * is changed.
 */
#ifndef INIT_WSL_WSL_CGROUPS_H
#define INIT_WSL_WSL_CGROUPS_H

#include "init/machine/cgroups.h"

/* The directory of the calling process's own group (open for reading), or a negative errno when
 * there is no cgroup2. */
int wsl_cgroups_find(void);

/* Stage `cgroups` in WSL, as PID 1. `own_fd` may be negative. `warning` says which limits are not
 * in force, or is "". Afterwards the caller is in a cgroup namespace whose root is ID, mounted
 * read-only at /sys/fs/cgroup. -EEXIST when a sandbox with this id is running. */
int wsl_cgroups_create(struct cgroups *groups, int own_fd, const struct boot_config *config,
                       struct failure *warning, struct failure *why);

/* Removes the groups of this id, waiting about a second until they are empty. Never fails. */
void wsl_cgroups_remove(int own_fd, const char *id);

#endif
