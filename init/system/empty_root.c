/* An empty root directory: the relay's.
 *
 * A plain chroot would leave the other mounts reachable for a process that escapes from it; here
 * they are removed from the process's mount namespace. The tmpfs is attached to /run, which every
 * image of ours has, and becomes the root by pivot_root(".", "."), which puts the old root on top
 * of the new one; then the old root is detached.
 */
#include "init/system/empty_root.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "init/system/mount_api.h"

#define EMPTY_ROOT_FLAGS                                                                           \
    (MOUNT_FLAG_READONLY | MOUNT_FLAG_NOSUID | MOUNT_FLAG_NODEV | MOUNT_FLAG_NOEXEC)

static int empty_tmpfs(void)
{
    CLEANUP_FD int context = mount_context_open("tmpfs");
    int result = context;

    if (result >= 0)
        result = mount_context_string(context, "mode", "0555");
    if (result >= 0)
        result = mount_context_string(context, "nr_inodes", "1");
    if (result >= 0)
        result = mount_context_flag(context, "ro");
    return result < 0 ? result : mount_context_create(context, EMPTY_ROOT_FLAGS);
}

int empty_root_pivot(int root, struct failure *why)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return failure_errno(why, errno, "make the mounts private");
    CLEANUP_FD int target = open("/run", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (target < 0)
        return failure_errno(why, errno, "open /run");
    int result = mount_attach(root, target);
    if (result < 0)
        return failure_errno(why, -result, "attach the empty root");

    if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return failure_errno(why, errno, "pivot to the empty root");
    if (umount2(".", MNT_DETACH) < 0)
        return failure_errno(why, errno, "detach the old root");
    if (chdir("/") < 0)
        return failure_errno(why, errno, "enter the empty root");
    return 0;
}

int empty_root_enter(struct failure *why)
{
#ifdef __SANITIZE_ADDRESS__
    return 0; /* this build loads shared libraries, which it must be able to open (test/san) */
#endif
    if (unshare(CLONE_NEWNS) < 0)
        return failure_errno(why, errno, "new mount namespace");
    CLEANUP_FD int root = empty_tmpfs();
    if (root < 0)
        return failure_errno(why, -root, "make an empty tmpfs");
    return empty_root_pivot(root, why);
}
