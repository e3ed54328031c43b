/* Opens the directories that folders are mounted on. */
#ifndef INIT_SYSTEM_MOUNT_TARGET_H
#define INIT_SYSTEM_MOUNT_TARGET_H

#include <sys/types.h>

#include "common/os/failure.h"

/* Who owns the directories that are made. */
struct mount_owner {
    uid_t uid;
    gid_t gid;
    const char *home;
};

/* Opens (O_PATH) the directory at a path that guest_folder_fault accepts, below `root`, and makes
 * what is missing with this mode. No symbolic link is followed: one is -ELOOP. With `owner`,
 * directories made on the file system of `root` itself, below /workspace or the owner's home,
 * belong to it; those made inside a mount get the owner that the file server gives them. The
 * descriptor, or a negative errno with the path so far. */
int mount_target_open(int root, const char *path, mode_t mode, const struct mount_owner *owner,
                      struct failure *why);

#endif
