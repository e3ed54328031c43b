/* Stage `mounts`: the user's folders.
 *
 * Every mount is made detached (mount_types.c) and then attached to a directory that was opened
 * without following a link (mount_target.c). The order follows from the paths: a mount waits for
 * those whose target lies above its own, and a bind also for those that hold its source.
 *
 * All are nosuid and nodev: a file of the host gives no rights in the guest. None is noexec,
 * because builds run programs there.
 */
#include "init/folders/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/os/child_linux.h"
#include "common/os/cleanup.h"
#include "common/text/escape.h"
#include "common/wire/guest_path.h"
#include "init/folders/gitconfig.h"
#include "init/folders/mount_types.h"
#include "init/system/mount_api.h"
#include "init/system/mount_target.h"
#include "init/wsl/wsl_link.h"

#define UNDO_TIMEOUT_MS 3000 /* a file server that is gone never answers */

static int outside_link = -1;

void mounts_outside(int link)
{
    outside_link = link;
}

/* The parser has checked the configuration; the privileged side checks it again. */
int mounts_check(const struct boot_config *config, struct failure *why)
{
    for (unsigned i = 0; i < config->mount_count; i++) {
        const char *target = config->mounts[i].target, *fault = guest_target_fault(target);
        if (fault)
            return failure_set(why, EINVAL, "the target %s", fault);
        for (unsigned j = 0; j < i; j++)
            if (strcmp(config->mounts[j].target, target) == 0)
                return failure_set(why, EEXIST, "two mounts have the same target");
    }
    return 0;
}

static bool waits_for(const struct boot_mount *mount, const struct boot_mount *other)
{
    if (mount == other)
        return false;
    if (guest_path_is_below(mount->target, other->target))
        return true;
    return mount->type == MOUNT_BIND && guest_path_is_below(mount->source, other->target);
}

static bool is_in(const struct boot_mount *const *list, unsigned count,
                  const struct boot_mount *mount)
{
    for (unsigned i = 0; i < count; i++)
        if (list[i] == mount)
            return true;
    return false;
}

/* True when all that this mount waits for is in the list. */
static bool is_ready(const struct boot_config *config, const struct boot_mount *const *list,
                     unsigned count, const struct boot_mount *mount)
{
    for (unsigned i = 0; i < config->mount_count; i++)
        if (waits_for(mount, &config->mounts[i]) && !is_in(list, count, &config->mounts[i]))
            return false;
    return true;
}

int mounts_order(const struct boot_config *config, const struct boot_mount *order[BOOT_MOUNTS_MAX])
{
    for (unsigned placed = 0; placed < config->mount_count;) {
        unsigned before = placed;
        for (unsigned i = 0; i < config->mount_count; i++) {
            const struct boot_mount *mount = &config->mounts[i];
            if (!is_in(order, placed, mount) && is_ready(config, order, placed, mount))
                order[placed++] = mount;
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

/* Puts the folder's name before the reason. */
static int folder_failure(struct failure *why, int result, const struct boot_mount *mount)
{
    char shown[160];

    escape_text(shown, sizeof(shown), mount->target, strlen(mount->target), 0);
    return failure_prefix(why, result, "mount %s (%s)", shown, mount_type_names[mount->type]);
}

int mounts_apply(const struct boot_config *config, const struct account *account,
                 struct failure *why)
{
    const struct boot_mount *order[BOOT_MOUNTS_MAX];
    int result = mounts_check(config, why);

    if (result < 0)
        return result;
    if (mounts_order(config, order) < 0)
        return failure_set(why, ELOOP, "bind mounts depend on each other in a circle");
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return failure_errno(why, errno, "open /");
    for (unsigned i = 0; i < config->mount_count; i++) {
        result = mount_one(root, order[i], account, why);
        if (result < 0)
            return folder_failure(why, result, order[i]);
    }
    return gitconfig_write(config, why);
}

/* Writes the file system out first, since it may be busy. The target is found without following
 * links: a name in a folder may have become one. */
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
    const struct boot_mount *order[BOOT_MOUNTS_MAX];
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    sync();
    if (root < 0 || mounts_order(config, order) < 0)
        return;
    for (unsigned i = config->mount_count; i > 0; i--)
        unmount_one(root, order[i - 1]);
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
    if (!child_wait(child, UNDO_TIMEOUT_MS, NULL))
        child_end(child);
}
