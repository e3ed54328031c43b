/* The directories that folders are mounted on. */
#ifndef INIT_SYSTEM_MOUNT_TARGET_H
#define INIT_SYSTEM_MOUNT_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/os/failure.h"

/* Who owns the directories that are made. */
struct mount_owner {
    uid_t uid;
    gid_t gid;
    const char *home;
};

/* True when the path is absolute and normal: no empty, "." or ".." component, no slash at the end, shorter than
 * PATH_MAX, no component longer than NAME_MAX. */
bool mount_path_is_normal(const char *path);

/* True when `path` is `directory` or lies below it, compared by whole components. */
bool mount_path_is_below(const char *path, const char *directory);

/* Opens (O_PATH) the directory at the absolute, normal path below `root`, making what is missing with this mode.
 * No symbolic link is followed in any component: one is -ELOOP. With `owner`, directories made on the file system
 * of `root` itself, below /workspace or the owner's home, belong to it; those made inside a mount belong to whom
 * the file server gives them. The descriptor, or a negative errno with the path so far. */
int mount_target_open(int root, const char *path, mode_t mode, const struct mount_owner *owner,
                      struct failure *why);

#endif
