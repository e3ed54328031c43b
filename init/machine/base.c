/* Stage `base`: a writable root over the read-only image, and the kernel's file systems in it.
 *
 * The image is an erofs that nothing can write. An overlay with a tmpfs as upper layer is mounted
 * over it, so changes to the system last as long as the session. The tmpfs is mounted on the
 * image's /run; after pivot_root no path leads to it or to the bare image.
 *
 * Then a table of mounts, with three decisions:
 *   - /tmp and /dev/shm are never noexec: builds run programs there;
 *   - /dev is a tmpfs with a few nodes and not a devtmpfs: disks, /dev/vsock, /dev/kmsg and devices
 *     that are plugged in later have no path. A mount of a disk uses a devtmpfs of its own that is
 *     attached nowhere (init/folders/mount_types.c);
 *   - /proc has hidepid=invisible: the account sees its own processes, but neither init nor the
 *     relay. Debuggers, ps and node read the entries of their own processes only.
 *
 * pivot_root does not work on an initramfs, here or for the relay (empty_root.c): the overlay is
 * moved over it, as the kernel does with a root of its own.
 */
#include "init/machine/base.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/system/sysctl.h"

#define LAYER_PLACE "/run"
#define LAYER_OPTIONS "lowerdir=/,upperdir=/run/upper,workdir=/run/work"
#define LAYER_ROOT "/run/root"

struct base_mount {
    const char *type, *target;
    unsigned long flags;
    const char *options;
};

static const struct base_mount base_mounts[] = {
    {"proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=invisible"},
    {"sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL},
    {"tmpfs", "/dev", MS_NOSUID | MS_STRICTATIME, "mode=0755,size=256k"},
    /* mode 0600: no group may write to another account's terminal */
    {"devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,mode=0600,ptmxmode=0666"},
    {"tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777"},
    {"tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=0755"},
    {"tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777"},
    {"tmpfs", "/var/tmp", MS_NOSUID | MS_NODEV, "mode=1777"},
};

/* In a machine only. */
static const struct base_mount machine_mounts[] = {
    {"cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
};

struct device_node {
    const char *path;
    mode_t mode;
    unsigned char major, minor;
};

/* Documentation/admin-guide/devices.txt. No group has access to any of them. */
static const struct device_node device_nodes[] = {
    {"/dev/null", 0666, 1, 3},   {"/dev/zero", 0666, 1, 5},    {"/dev/full", 0666, 1, 7},
    {"/dev/random", 0666, 1, 8}, {"/dev/urandom", 0666, 1, 9}, {"/dev/tty", 0666, 5, 0},
};
static const struct device_node machine_nodes[] = {{"/dev/console", 0600, 5, 1}};

static const struct {
    const char *path, *text;
} base_links[] = {
    {"/dev/ptmx", "pts/ptmx"},          {"/dev/fd", "/proc/self/fd"},
    {"/dev/stdin", "/proc/self/fd/0"},  {"/dev/stdout", "/proc/self/fd/1"},
    {"/dev/stderr", "/proc/self/fd/2"},
};

static int make_directory(const char *path, mode_t mode, struct failure *why)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return failure_errno(why, errno, "make the directory %s", path);
    return 0;
}

static int layer_mount(struct failure *why)
{
    static const char *const directories[] = {"/run/upper", "/run/work", LAYER_ROOT};

    if (mount("tmpfs", LAYER_PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") < 0)
        return failure_errno(why, errno, "mount a tmpfs for the writable layer");
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
        int result = make_directory(directories[i], 0755, why);
        if (result < 0)
            return result;
    }
    if (mount("overlay", LAYER_ROOT, "overlay", MS_NOSUID | MS_NODEV, LAYER_OPTIONS) < 0)
        return failure_errno(why, errno, "mount the overlay over the image");
    return 0;
}

/* pivot_root(".", ".") puts the old root on top of the new one; "." is then the old root. */
static int layer_enter(struct failure *why)
{
    if (chdir(LAYER_ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return failure_errno(why, errno, "pivot_root to the writable root");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return failure_errno(why, errno, "detach the bare image");
    return 0;
}

static int layer_cover(struct failure *why)
{
    if (chdir(LAYER_ROOT) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0)
        return failure_errno(why, errno, "move the writable root over the initramfs");
    if (chroot(".") < 0 || chdir("/") < 0)
        return failure_errno(why, errno, "enter the writable root");
    return 0;
}

static int root_make_writable(struct failure *why)
{
    struct statfs root;

    if (statfs("/", &root) < 0)
        return failure_errno(why, errno, "examine the root");
    if (root.f_type == OVERLAYFS_SUPER_MAGIC)
        return 0;
    int result = layer_mount(why);
    if (result < 0)
        return result;
    bool initramfs = root.f_type == RAMFS_MAGIC || root.f_type == TMPFS_MAGIC;
    return initramfs ? layer_cover(why) : layer_enter(why);
}

static int mount_table(const struct base_mount *table, size_t count, struct failure *why)
{
    for (size_t i = 0; i < count; i++) {
        const struct base_mount *entry = &table[i];
        if (mkdir(entry->target, 0755) < 0 && errno != EEXIST && errno != EPERM && errno != EROFS)
            return failure_errno(why, errno, "make the directory %s", entry->target);
        /* EBUSY: this very file system is mounted there already */
        if (mount(entry->type, entry->target, entry->type, entry->flags, entry->options) < 0 &&
            errno != EBUSY)
            return failure_errno(why, errno, "mount %s on %s", entry->type, entry->target);
    }
    return 0;
}

static int make_nodes(const struct device_node *table, size_t count, struct failure *why)
{
    for (size_t i = 0; i < count; i++) {
        const struct device_node *node = &table[i];
        if (mknod(node->path, S_IFCHR | node->mode, makedev(node->major, node->minor)) < 0)
            return failure_errno(why, errno, "make %s", node->path);
    }
    return 0;
}

static int make_links(struct failure *why)
{
    for (size_t i = 0; i < ARRAY_LENGTH(base_links); i++) {
        if (symlink(base_links[i].text, base_links[i].path) < 0)
            return failure_errno(why, errno, "make the link %s", base_links[i].path);
    }
    return 0;
}

/* A start mostly waits for grace periods of RCU: each change of a cgroup, a mount tree or a network
 * namespace costs one, 10 to 20 ms on an idle machine. Expedited ones cost a few interrupts instead
 * (Documentation/RCU/Design/Requirements). This only saves time, so a failure is no error. */
static void grace_periods_expedite(void)
{
    if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return;
    (void)io_write_file(AT_FDCWD, "/sys/kernel/rcu_expedited", O_WRONLY, 0, "1");
    (void)umount2("/sys", MNT_DETACH);
}

/* Mounts, nodes and links of every sandbox. */
static int populate(struct failure *why)
{
    int result = mount_table(base_mounts, ARRAY_LENGTH(base_mounts), why);

    if (result == 0)
        result = make_nodes(device_nodes, ARRAY_LENGTH(device_nodes), why);
    if (result == 0)
        result = make_links(why);
    if (result == 0)
        result = make_directory("/run/codev", 0755, why);
    return result;
}

int base_mount(struct failure *why)
{
    mode_t mask = umask(0);

    grace_periods_expedite();
    int result = root_make_writable(why);

    if (result == 0)
        result = populate(why);
    if (result == 0)
        result = mount_table(machine_mounts, ARRAY_LENGTH(machine_mounts), why);
    if (result == 0)
        result = make_nodes(machine_nodes, ARRAY_LENGTH(machine_nodes), why);
    umask(mask);
    if (result == 0)
        sysctl_apply();
    return result;
}

/* Removes the files and folders that WSL makes in a distribution as places for its mounts. They are
 * empty in the lower layer. */
static int clean_layer(struct failure *why)
{
    static const char *const places[] = {"/init", "/mnt/wsl", "/mnt/wslg"};

    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        if (unlink(places[i]) < 0 && rmdir(places[i]) < 0 && errno != ENOENT)
            return failure_errno(why, errno, "remove %s from the layer", places[i]);
    }
    (void)unlink("/etc/resolv.conf"); /* WSL makes it a link into a folder that is hidden here */
    int result = io_write_file(AT_FDCWD, "/etc/resolv.conf", O_WRONLY | O_CREAT | O_NOFOLLOW, 0644,
                               "nameserver 127.0.0.1\n");
    return result < 0 ? failure_errno(why, -result, "write /etc/resolv.conf") : 0;
}

int base_mount_in_wsl(struct failure *why)
{
    mode_t mask = umask(0);
    int result = 0;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        result = failure_errno(why, errno, "make the mounts private");
    if (result == 0)
        result = layer_mount(why);
    if (result == 0)
        result = layer_enter(why);
    if (result == 0)
        result = populate(why);
    if (result == 0)
        result = clean_layer(why);
    umask(mask);
    return result;
}
