/* How each type of mount is made: a table of file system, source and options.
 *
 * 9p: the cache mode `mmap` keeps only pages of writable shared mappings, which programs like sqlite and cargo
 * need, and nothing else, so that what the host changes is seen at once and the other way round (`loose` would
 * not); the message size is the most that the virtio transport takes (128 descriptors less 3, 4 KiB each); no POSIX
 * ACLs: the mode bits are what both sides understand.
 *
 * Disks: there are no device nodes in this guest. A devtmpfs is made that is attached nowhere, the node opened in
 * it, and the kernel reads the disk through that descriptor.
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
#include "init/system/mount_api.h"
#include "init/system/mount_target.h"

#define MOUNT_OPTIONS_MAX 6
#define DEVICE_PREFIX "/dev/"

struct mount_option {
    const char *key, *value;
};

/* What is the same for every mount of a type. */
struct mount_type_entry {
    const char *filesystem; /* NULL: no file system of its own */
    bool is_disk;           /* its source is a device node */
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

/* Opens something that exists below a directory, through no link. */
static int open_below(int directory, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned long long)(O_PATH | O_NOFOLLOW | O_CLOEXEC | flags),
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
    };
    int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}

/* A copy of what is mounted at and below the source, so that the same is seen in both places. */
static int make_bind(const struct boot_mount *mount, struct failure *why)
{
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (!mount_path_is_normal(mount->source))
        return failure_set(why, EINVAL, "the source is no absolute, normal path");
    CLEANUP_FD int source = open_below(root, mount->source + 1, O_DIRECTORY);
    if (source < 0)
        return failure_errno(why, -source, "open the source");
    int copy = mount_copy_tree(source, attributes(mount));
    return copy < 0 ? failure_errno(why, -copy, "bind") : copy;
}

static int open_disk(const char *source, struct failure *why)
{
    const char *name = source + strlen(DEVICE_PREFIX);

    if (strncmp(source, DEVICE_PREFIX, strlen(DEVICE_PREFIX)) != 0 || *name == '\0' ||
        strchr(name, '/') != NULL)
        return failure_set(why, EINVAL, "the source of a disk is /dev/NAME");
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

    for (size_t i = 0; result == 0 && i < MOUNT_OPTIONS_MAX && options[i].key != NULL; i++)
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
    return failure_errno(why, error, "the kernel refuses");
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
    return failure_set(why, EINVAL, "no such type of mount");
}
