/* Makes the memory file, and the link to it. */
#include "qemu-harness/launcher/machine/guest_memory_internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"

int guest_memory_make(long mebibytes, const struct account *account, struct failure *why)
{
    CLEANUP_FD int fd = memfd_create("codev-guest-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)mebibytes * 1024 * 1024) || fchmod(fd, 0600) ||
        fchown(fd, account->uid, account->gid))
        return failure_errno(why, errno, "guest memory of %ld MiB", mebibytes);
    return fd_steal(&fd);
}

int guest_memory_link(const struct run_folder *folder, pid_t qemu, int memory, struct failure *why)
{
    char target[64], path[RUN_PATH_MAX];
    snprintf(target, sizeof(target), "/proc/%d/fd/%d", (int)qemu, memory);
    run_folder_name(folder, path, "memory");
    return symlink(target, path) ? failure_errno(why, errno, "%s", path) : 0;
}
