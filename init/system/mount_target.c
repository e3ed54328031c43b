/* The directories that folders are mounted on, made and opened one component at a time.
 *
 * A folder of the user may hold anything, also a symbolic link where a second folder is to be mounted; followed, it
 * would put that folder over /etc. So no path is ever resolved as a whole: each component is opened below the one
 * before it by openat2(2) with RESOLVE_NO_SYMLINKS, and the mount is attached to the descriptor at the end. What
 * someone exchanges in the meantime changes nothing any more.
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

#define WORKSPACE "/workspace"

bool mount_path_is_normal(const char *path)
{
    if (path[0] != '/' || path[1] == '\0' || strlen(path) >= PATH_MAX)
        return false;
    for (const char *component = path + 1;;) {
        size_t length = strcspn(component, "/");
        if (length == 0 || length > NAME_MAX || (length == 1 && component[0] == '.') ||
            (length == 2 && component[0] == '.' && component[1] == '.'))
            return false;
        if (component[length] == '\0')
            return true;
        component += length + 1;
    }
}

bool mount_path_is_below(const char *path, const char *directory)
{
    size_t length = strlen(directory);

    while (length > 0 && directory[length - 1] == '/')
        length--;
    return strncmp(path, directory, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static int open_component(int parent, const char *name)
{
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
    };
    int fd = (int)syscall(SYS_openat2, parent, name, &how, sizeof(how));

    /* a link as the last component is "no directory" to O_NOFOLLOW: say what it is */
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

/* In a folder of the user's the account makes the directory: the host's file server runs with its ids, and refuses
 * to make one for root. */
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

/* A missing directory; whose it becomes is described at mount_target_open. */
static int make_component(int root, int parent, const char *name, mode_t mode,
                          const struct mount_owner *owner, bool owned)
{
    int result;

    if (owner != NULL && !same_device(root, parent))
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

/* Says how far the walk came: with odd names shown so that they cannot change the line. */
static int walk_failure(struct failure *why, int error, const char *path, size_t length)
{
    char shown[160];

    escape_text(shown, sizeof(shown), path, length, 0);
    if (error == ELOOP)
        return failure_set(why, ELOOP, "%s is a symbolic link, and none is followed", shown);
    return failure_errno(why, error, "%s", shown);
}

int mount_target_open(int root, const char *path, mode_t mode, const struct mount_owner *owner,
                      struct failure *why)
{
    char name[NAME_MAX + 1];
    CLEANUP_FD int here = fcntl(root, F_DUPFD_CLOEXEC, 3);

    if (here < 0)
        return failure_errno(why, errno, "open %.160s", path);
    if (!mount_path_is_normal(path))
        return walk_failure(why, EINVAL, path, strlen(path));
    bool owned = owner != NULL &&
                 (mount_path_is_below(path, WORKSPACE) || mount_path_is_below(path, owner->home));
    for (const char *component = path + 1; *component != '\0';) {
        size_t length = strcspn(component, "/"), so_far = (size_t)(component - path) + length;
        memcpy(name, component, length);
        name[length] = '\0';

        int next = open_component(here, name);
        /* of /home/codev/app, /home is not the account's */
        bool its_own =
            owned && (so_far >= strlen(owner->home) || mount_path_is_below(path, WORKSPACE));
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
