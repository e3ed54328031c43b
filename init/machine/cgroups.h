/* Stage `cgroups`: /codev/ID/server and /codev/ID/relay with their limits. */
#ifndef INIT_MACHINE_CGROUPS_H
#define INIT_MACHINE_CGROUPS_H

#include <stdbool.h>
#include <sys/types.h>

#include "init/config/boot_config.h"

struct cgroups {
    int server_fd, relay_fd; /* directories, O_PATH | O_CLOEXEC; -1 when absent */
};

/* Makes both groups. The server's memory is always limited: an eighth of the memory, at most 64
 * MiB, is reserved for the kernel, init and the relay. */
int cgroups_create(struct cgroups *groups, const struct boot_config *config, struct failure *why);

/* Sets the limits of both groups. `way_down` are the groups from the top to their parent, which
 * pass the controllers on. */
int cgroups_limit(const struct cgroups *groups, const int *way_down, unsigned depth,
                  const struct boot_config *config, struct failure *why);

/* Makes a group below `parent` if it does not exist, and opens it. */
int cgroup_make(int parent, const char *name, struct failure *why);

/* Moves the calling process into a group by its directory. */
int cgroup_enter(int group_fd, struct failure *why);

/* Kills everything in a group through cgroup.kill; 0 or a negative errno. */
int cgroup_kill(int group_fd);

/* True while cgroup.events says populated. */
bool cgroup_populated(int group_fd);

#endif
