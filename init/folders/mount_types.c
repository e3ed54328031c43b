/* Makes a detached mount of each type, from a table of file systems and their options.
 *
 * 9p: the cache mode `mmap` caches pages of writable shared mappings only, which sqlite and cargo
 * need; other changes of host and guest are visible to the other side at once (with `loose` they
 * are not). The message size is the largest that the virtio transport takes (128 descriptors less
 * 3, 4 KiB each). There are no POSIX ACLs: both sides understand mode bits.
 *
 * Disks: this guest has no device nodes. The node is opened in a devtmpfs that is attached nowhere,
 * and the kernel reads the disk through that descriptor.
 */
#include "init/folders/mount_types.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/wire/guest_path.h"
#include "init/system/mount_api.h"

#define MOUNT_OPTIONS_MAX 6

struct mount_option {
    const char *key, *value;
};

struct mount_type_entry {
    const char *filesystem; /* NULL: no file system of its own */
    bool is_disk;           /* the source is a device node */
    struct mount_option options[MOUNT_OPTIONS_MAX];
};

static const struct mount_type_entry mount_types[MOUNT_TYPE_COUNT] = {
    [MOUNT_VIRTIOFS] = {.filesystem = "virtiofs"},
    [MOUNT_9P] = {.filesystem = "9p",
                  .options = {{"trans", "virtio"},
                              {"version", "9p2000.L"},
                              {"msize", "512000"},
                              {"cache", "mmap"},
                              {"access", "client"}}},
    [MOUNT_TMPFS] = {.filesystem = "tmpfs", .options = {{"mode", "0755"}, {"size", "50%"}}},
    [MOUNT_EXT4] = {.filesystem = "ext4", .is_disk = true},
    [MOUNT_EROFS] = {.filesystem = "erofs", .is_disk = true},
};

static unsigned attributes(const struct boot_mount *mount)
{
    return MOUNT_FLAG_NOSUID | MOUNT_FLAG_NODEV | (mount->readonly ? MOUNT_FLAG_READONLY : 0);
}

/* Opens an existing file or directory below a directory, without following links. */
static int open_below(int directory, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned long long)(O_PATH | O_NOFOLLOW | O_CLOEXEC | flags),
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
    };
    int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}

/* A copy of the mounts at and below the source. */
static int make_bind(const struct boot_mount *mount, struct failure *why)
{
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    const char *fault = guest_folder_fault(mount->source);
    if (fault)
        return failure_set(why, EINVAL, "the source %s", fault);
    CLEANUP_FD int source = open_below(root, mount->source + 1, O_DIRECTORY);
    if (source < 0)
        return failure_errno(why, -source, "open the source");
    int copy = mount_copy_tree(source, attributes(mount));
    return copy < 0 ? failure_errno(why, -copy, "bind") : copy;
}

static int open_disk(const char *source, struct failure *why)
{
    const char *name = guest_disk_name(source);

    if (!name)
        return failure_set(why, EINVAL, "the source of a disk must be /dev/NAME");
    CLEANUP_FD int context = mount_context_open("devtmpfs");
    if (context < 0)
        return failure_errno(why, -context, "devtmpfs");
    CLEANUP_FD int devices = mount_context_create(context, MOUNT_FLAG_NOSUID | MOUNT_FLAG_NOEXEC);
    if (devices < 0)
        return failure_errno(why, -devices, "devtmpfs");
    int disk = open_below(devices, name, 0);
    return disk < 0 ? failure_errno(why, -disk, "open the disk %.100s", source) : disk;
}

static int set_options(int context, const struct boot_mount *mount, const char *source,
                       const struct account *account)
{
    const struct mount_option *options = mount_types[mount->type].options;
    char id[16];
    int result = mount_context_string(context, "source", source);

    for (size_t i = 0; result == 0 && i < MOUNT_OPTIONS_MAX && options[i].key; i++)
        result = mount_context_string(context, options[i].key, options[i].value);
    if (result == 0 && mount->type == MOUNT_TMPFS) {
        snprintf(id, sizeof(id), "%u", account->uid);
        result = mount_context_string(context, "uid", id);
        snprintf(id, sizeof(id), "%u", account->gid);
        if (result == 0)
            result = mount_context_string(context, "gid", id);
    }
    if (result == 0 && mount->readonly)
        result = mount_context_flag(context, "ro");
    return result;
}

static int context_failure(int context, int error, struct failure *why)
{
    char reason[200];

    mount_context_reason(context, reason, sizeof(reason));
    if (reason[0] != '\0')
        return failure_errno(why, error, "%s", reason);
    return failure_errno(why, error, "the kernel refuses the mount");
}

static int make_filesystem(const struct boot_mount *mount, const struct account *account,
                           struct failure *why)
{
    const struct mount_type_entry *type = &mount_types[mount->type];
    const char *source = mount->type == MOUNT_TMPFS ? "tmpfs" : mount->source;
    char disk_path[40];
    CLEANUP_FD int disk = -1;

    if (type->is_disk) {
        disk = open_disk(mount->source, why);
        if (disk < 0)
            return disk;
        snprintf(disk_path, sizeof(disk_path), "/proc/self/fd/%d", disk);
        source = disk_path;
    }
    CLEANUP_FD int context = mount_context_open(type->filesystem);
    if (context < 0)
        return failure_errno(why, -context, "this kernel has no %s", type->filesystem);
    int result = set_options(context, mount, source, account);
    if (result == 0)
        result = mount_context_create(context, attributes(mount));
    return result < 0 ? context_failure(context, -result, why) : result;
}

int mount_type_make(const struct boot_mount *mount, const struct account *account,
                    struct failure *why)
{
    switch (mount->type) {
    case MOUNT_BIND:
        return make_bind(mount, why);
    case MOUNT_DRVFS:
        return failure_set(why, ENOSYS, "Windows drives exist in WSL only");
    case MOUNT_VIRTIOFS:
    case MOUNT_9P:
    case MOUNT_TMPFS:
    case MOUNT_EXT4:
    case MOUNT_EROFS:
        return make_filesystem(mount, account, why);
    case MOUNT_TYPE_COUNT:
        break;
    }
    return failure_set(why, EINVAL, "unknown type of mount");
}
