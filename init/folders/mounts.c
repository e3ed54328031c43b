/* Stage `mounts`: the user's folders.
 *
 * Every mount is made detached, from the keys of a file system context (mount_types.c), and then attached to a
 * directory that was opened without following a link (mount_target.c). The order follows from the paths: a mount
 * waits for those whose target lies above its own, and a bind also for those that hold its source.
 *
 * All are nosuid and nodev: what the host's folders hold gives no rights here. None is noexec, because builds run
 * programs there.
 */
#include "init/folders/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/text/escape.h"
#include "init/folders/gitconfig.h"
#include "init/folders/mount_types.h"
#include "init/system/child_wait.h"
#include "init/system/mount_api.h"
#include "init/system/mount_target.h"
#include "init/wsl/wsl_link.h"

#define UNDO_TIMEOUT_MS 3000 /* a file server that is gone may answer nothing at all */

static int outside_link = -1;

void mounts_outside(int link)
{
    outside_link = link;
}

static const char *const target_roots[] = {
    "/workspace", "/home", "/opt", "/mnt", "/srv", "/run/codev",
};

/* The whole of /run/codev is ours: sandbox.json stands there. */
static bool target_is_allowed(const char *target)
{
    if (strcmp(target, "/run/codev") == 0)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(target_roots); i++) {
        if (mount_path_is_below(target, target_roots[i]))
            return true;
    }
    return false;
}

/* The configuration was validated when it was parsed; what is privileged here looks again. */
static int check_targets(const struct boot_config *config, struct failure *why)
{
    for (unsigned i = 0; i < config->mount_count; i++) {
        const char *target = config->mounts[i].target;
        if (!mount_path_is_normal(target) || !target_is_allowed(target))
            return failure_set(why, EINVAL, "nothing may be mounted there");
        for (unsigned j = 0; j < i; j++) {
            if (strcmp(config->mounts[j].target, target) == 0)
                return failure_set(why, EEXIST, "two mounts have this target");
        }
    }
    return 0;
}

static bool waits_for(const struct boot_mount *mount, const struct boot_mount *other)
{
    if (mount == other)
        return false;
    if (mount_path_is_below(mount->target, other->target))
        return true;
    return mount->type == MOUNT_BIND && mount_path_is_below(mount->source, other->target);
}

int mounts_order(const struct boot_config *config, unsigned order[BOOT_MOUNTS_MAX])
{
    bool done[BOOT_MOUNTS_MAX] = {false};

    for (unsigned placed = 0; placed < config->mount_count;) {
        unsigned before = placed;
        for (unsigned i = 0; i < config->mount_count; i++) {
            bool ready = !done[i];
            for (unsigned j = 0; ready && j < config->mount_count; j++)
                ready = done[j] || !waits_for(&config->mounts[i], &config->mounts[j]);
            if (!ready)
                continue;
            done[i] = true;
            order[placed++] = i;
        }
        if (placed == before)
            return -ELOOP;
    }
    return 0;
}

static int mount_one(int root, const struct boot_mount *mount, const struct account *account,
                     struct failure *why)
{
    bool outside = outside_link >= 0 && (mount->type == MOUNT_DRVFS || mount->outside);
    CLEANUP_FD int detached = outside ? wsl_link_mount(outside_link, mount, account, why)
                                      : mount_type_make(mount, account, why);
    if (detached < 0)
        return detached;
    const struct mount_owner owner = {account->uid, account->gid, account->home};
    CLEANUP_FD int target = mount_target_open(root, mount->target, 0755, &owner, why);
    if (target < 0)
        return failure_prefix(why, target, "the target");
    int result = mount_attach(detached, target);
    return result < 0 ? failure_errno(why, -result, "attach") : 0;
}

/* The folder's name goes before whatever went wrong with it. */
static int folder_failure(struct failure *why, int result, const struct boot_mount *mount)
{
    char shown[160];

    escape_text(shown, sizeof(shown), mount->target, strlen(mount->target), 0);
    return failure_prefix(why, result, "mount %s (%s)", shown, mount_type_names[mount->type]);
}

int mounts_apply(const struct boot_config *config, const struct account *account,
                 struct failure *why)
{
    unsigned order[BOOT_MOUNTS_MAX];
    int result = check_targets(config, why);

    if (result < 0)
        return result;
    if (mounts_order(config, order) < 0)
        return failure_set(why, ELOOP, "binds that each need the other to be mounted first");
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return failure_errno(why, errno, "open /");
    for (unsigned i = 0; i < config->mount_count; i++) {
        const struct boot_mount *mount = &config->mounts[order[i]];
        result = mount_one(root, mount, account, why);
        if (result < 0)
            return folder_failure(why, result, mount);
    }
    return gitconfig_write(config, why);
}

/* Busy or not, it is written out first. By descriptor: a name in a folder may have become a link by now. */
static void unmount_one(int root, const struct boot_mount *mount)
{
    char path[40];
    CLEANUP_FD int target = mount_target_open(root, mount->target, 0755, NULL, NULL);

    if (target < 0)
        return;
    if (mount->type == MOUNT_EXT4)
        (void)mount_make_readonly(target);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", target);
    (void)umount2(path, MNT_DETACH);
}

static void unmount_all(const struct boot_config *config)
{
    unsigned order[BOOT_MOUNTS_MAX];
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    sync();
    if (root < 0 || mounts_order(config, order) < 0)
        return;
    for (unsigned i = config->mount_count; i > 0; i--)
        unmount_one(root, &config->mounts[order[i - 1]]);
    sync();
}

void mounts_undo(const struct boot_config *config)
{
    pid_t child = fork();

    if (child == 0) {
        unmount_all(config);
        _exit(0);
    }
    if (child < 0) {
        sync();
        return;
    }
    if (!child_wait(child, UNDO_TIMEOUT_MS))
        child_end(child);
}
