/* Opens the directory at a path one name at a time, and makes what is missing.
 *
 * A folder of the user may hold a symbolic link where a second folder is to be mounted; if it were
 * followed, that folder could be mounted over /etc. So no path is resolved as a whole: each name is
 * opened below the directory before it by openat2(2) with RESOLVE_NO_SYMLINKS, and the mount is
 * attached to the last descriptor. A change of the path in the meantime has no effect.
 */
#include "init/system/mount_target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/text/escape.h"
#include "common/wire/guest_path.h"

#define WORKSPACE "/workspace"

static int open_component(int parent, const char *name)
{
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
    };
    int fd = (int)syscall(SYS_openat2, parent, name, &how, sizeof(how));

    /* O_NOFOLLOW reports a link as ENOTDIR */
    struct stat entry;
    if (fd < 0 && errno == ENOTDIR && fstatat(parent, name, &entry, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(entry.st_mode))
        return -ELOOP;
    return fd < 0 ? -errno : fd;
}

static bool same_device(int left, int right)
{
    struct stat left_status, right_status;

    return fstat(left, &left_status) == 0 && fstat(right, &right_status) == 0 &&
           left_status.st_dev == right_status.st_dev;
}

/* In a folder of the user the account makes the directory: the file server on the host runs with
 * the account's ids and cannot make one for root. */
static int make_as_account(int parent, const char *name, mode_t mode,
                           const struct mount_owner *owner)
{
    setfsgid(owner->gid);
    setfsuid(owner->uid);
    int result = mkdirat(parent, name, mode) < 0 ? -errno : 0;
    setfsuid(0);
    setfsgid(0);
    return result;
}

/* Makes a directory; mount_target_open says who owns it. */
static int make_component(int root, int parent, const char *name, mode_t mode,
                          const struct mount_owner *owner, bool owned)
{
    int result;

    if (owner && !same_device(root, parent))
        result = make_as_account(parent, name, mode, owner);
    else
        result = mkdirat(parent, name, mode) < 0 ? -errno : 0;
    if (result < 0 && result != -EEXIST)
        return result;
    CLEANUP_FD int directory = open_component(parent, name);
    if (directory < 0)
        return directory;
    if (owned && same_device(root, directory) &&
        fchownat(directory, "", owner->uid, owner->gid, AT_EMPTY_PATH) < 0)
        return -errno;
    return fd_steal(&directory);
}

/* Names the path as far as the walk came, escaped. */
static int walk_failure(struct failure *why, int error, const char *path, size_t length)
{
    char shown[160];

    escape_text(shown, sizeof(shown), path, length, 0);
    if (error == ELOOP)
        return failure_set(why, ELOOP, "%s is a symbolic link, which is not followed", shown);
    return failure_errno(why, error, "%s", shown);
}

int mount_target_open(int root, const char *path, mode_t mode, const struct mount_owner *owner,
                      struct failure *why)
{
    char name[NAME_MAX + 1];
    CLEANUP_FD int here = fcntl(root, F_DUPFD_CLOEXEC, 3);

    if (here < 0)
        return failure_errno(why, errno, "open %.160s", path);
    if (guest_folder_fault(path))
        return walk_failure(why, EINVAL, path, strlen(path));
    bool owned =
        owner && (guest_path_is_below(path, WORKSPACE) || guest_path_is_below(path, owner->home));
    for (const char *component = path + 1; *component != '\0';) {
        size_t length = strcspn(component, "/"), so_far = (size_t)(component - path) + length;
        memcpy(name, component, length);
        name[length] = '\0';

        int next = open_component(here, name);
        /* in /home/codev/app the account owns codev and app, not home */
        bool its_own =
            owned && (so_far >= strlen(owner->home) || guest_path_is_below(path, WORKSPACE));
        if (next == -ENOENT)
            next = make_component(root, here, name, mode, owner, its_own);
        if (next < 0)
            return walk_failure(why, -next, path, so_far);
        fd_close(&here);
        here = next;
        component += length + (component[length] == '/');
    }
    return fd_steal(&here);
}
