/* Stage `cgroups`: two groups below /codev/ID, one for the server and one for the relay, so that
 * limits and cgroup.kill of the first do not affect the second. init stays in the root group, which
 * may hold processes and pass controllers on. All files belong to root: the account can read its
 * limits but not change them.
 */
#include "init/machine/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/system/text.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define CGROUP_CONTROLLERS "+pids +memory"

/* The relay: one process, and buffers of it and the kernel for RELAY_CONNECTIONS_MAX
 * connections. */
#define RELAY_PIDS_MAX 8
#define RELAY_MEMORY_MAX (256ll * 1024 * 1024)

/* Memory that the server never gets, even without a configured limit: files on the tmpfs mounts are
 * not freed when a process is killed, and a machine full of them could not shut down properly. */
#define RESERVE_MAX (64ll * 1024 * 1024)
#define RESERVE_SHARE 8 /* of the machine's memory, where that is less */

int cgroup_make(int parent, const char *name, struct failure *why)
{
    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
        return failure_errno(why, errno, "make the cgroup %s", name);
    int group = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return group < 0 ? failure_errno(why, errno, "open the cgroup %s", name) : group;
}

static int group_pass_controllers(int group, struct failure *why)
{
    int result = io_write_file(group, "cgroup.subtree_control", O_WRONLY, 0, CGROUP_CONTROLLERS);
    return result < 0 ? failure_errno(why, -result, "pass the controllers pids and memory on") : 0;
}

static int group_limit(int group, const char *file, int64_t value, struct failure *why)
{
    char text[24];

    snprintf(text, sizeof(text), value > 0 ? "%" PRId64 : "max", value);
    int result = io_write_file(group, file, O_WRONLY, 0, text);
    return result < 0 ? failure_errno(why, -result, "set %s to %s", file, text) : 0;
}

/* The machine's memory less the reserve, or the configured limit if that is lower. 0: no limit. */
static int64_t server_memory(int64_t memory_mib)
{
    struct sysinfo machine;
    int64_t wanted = memory_mib * 1024 * 1024, most = 0;

    if (sysinfo(&machine) == 0) {
        int64_t total = (int64_t)machine.totalram * machine.mem_unit;
        int64_t share = total / RESERVE_SHARE;
        most = total - (share < RESERVE_MAX ? share : RESERVE_MAX);
    }
    return wanted > 0 && (wanted < most || most == 0) ? wanted : most;
}

/* No swap, which would extend the memory limit; not every kernel has it. */
static int group_limit_all(int group, int64_t pids, int64_t memory, struct failure *why)
{
    int result = group_limit(group, "pids.max", pids, why);

    if (result == 0)
        result = group_limit(group, "memory.max", memory, why);
    if (result == 0)
        (void)io_write_file(group, "memory.swap.max", O_WRONLY, 0, "0");
    return result;
}

int cgroups_limit(const struct cgroups *groups, const int *way_down, unsigned depth,
                  const struct boot_config *config, struct failure *why)
{
    int result = 0;

    for (unsigned level = 0; result == 0 && level < depth; level++)
        result = group_pass_controllers(way_down[level], why);
    if (result == 0)
        result = group_limit_all(groups->server_fd, config->limit_pids,
                                 server_memory(config->limit_memory_mib), why);
    if (result == 0)
        result = group_limit_all(groups->relay_fd, RELAY_PIDS_MAX, RELAY_MEMORY_MAX, why);
    return result;
}

int cgroups_create(struct cgroups *groups, const struct boot_config *config, struct failure *why)
{
    groups->server_fd = groups->relay_fd = -1;

    CLEANUP_FD int root = open(CGROUP_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return failure_errno(why, errno, "open " CGROUP_ROOT);
    CLEANUP_FD int codev = cgroup_make(root, "codev", why);
    if (codev < 0)
        return codev;
    CLEANUP_FD int own = cgroup_make(codev, config->id, why);
    if (own < 0)
        return own;
    CLEANUP_FD int server = cgroup_make(own, "server", why);
    if (server < 0)
        return server;
    CLEANUP_FD int relay = cgroup_make(own, "relay", why);
    if (relay < 0)
        return relay;
    const struct cgroups made = {.server_fd = server, .relay_fd = relay};
    const int way_down[] = {root, codev, own};
    int result = cgroups_limit(&made, way_down, ARRAY_LENGTH(way_down), config, why);
    if (result < 0)
        return result;
    groups->server_fd = fd_steal(&server);
    groups->relay_fd = fd_steal(&relay);
    return 0;
}

int cgroup_enter(int group_fd, struct failure *why)
{
    int result = io_write_file(group_fd, "cgroup.procs", O_WRONLY, 0, "0");
    return result < 0 ? failure_errno(why, -result, "enter the cgroup") : 0;
}

int cgroup_kill(int group_fd)
{
    return io_write_file(group_fd, "cgroup.kill", O_WRONLY, 0, "1");
}

bool cgroup_populated(int group_fd)
{
    char events[256];

    if (io_read_file(group_fd, "cgroup.events", 0, events, sizeof(events)) < 0)
        return false;
    return text_contains(events, "populated 1");
}
