/* See mount_check.h. Containment is decided on inodes: `inner` lies in `outer` when outer's device and
 * inode are met on the way from inner up to the root. */
#include "qemu-harness/launcher/folders/mount_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"

static int mount_open(struct mount *mount, unsigned index, const char *text, struct failure *why)
{
    int result = mount_spec_parse(&mount->spec, text, why);
    if (result)
        return result;
    if (!realpath(mount->spec.host, mount->real))
        return failure_errno(why, errno, "mount %s", mount->spec.host);
    mount->fd = open(mount->real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mount->fd < 0)
        return failure_errno(why, errno, "mount %s", mount->real);
    struct stat status;
    if (fstat(mount->fd, &status))
        return failure_errno(why, errno, "mount %s", mount->real);
    mount->uid = status.st_uid;
    mount->gid = status.st_gid;
    mount->mode = status.st_mode;
    snprintf(mount->tag, sizeof(mount->tag), "m%u", index);
    return mount_spec_default_guest(&mount->spec, mount->real, why);
}

int mount_table_open(struct mount_table *table, const struct option_list *mounts,
                     struct failure *why)
{
    *table = (struct mount_table){0};
    if (mounts->count == 0)
        return 0;
    table->entries = calloc(mounts->count, sizeof(*table->entries));
    if (!table->entries)
        return failure_errno(why, ENOMEM, "mounts");
    for (unsigned i = 0; i < mounts->count; i++)
        table->entries[i].fd = -1;
    table->count = mounts->count;
    for (unsigned i = 0; i < mounts->count; i++) {
        int result = mount_open(&table->entries[i], i, mounts->items[i], why);
        if (result)
            return result;
    }
    return 0;
}

void mount_table_close(struct mount_table *table)
{
    for (unsigned i = 0; i < table->count; i++)
        fd_close(&table->entries[i].fd);
    free(table->entries);
    *table = (struct mount_table){0};
}

/* Opens the path's folder: itself when it is one, else the nearest parent that exists. */
static int open_nearest_folder(const char *path)
{
    char walk[PATH_MAX];
    if (snprintf(walk, sizeof(walk), "%s%s", path[0] == '/' ? "" : "./", path) >= (int)sizeof(walk))
        return -ENAMETOOLONG;
    for (;;) {
        int fd = open(walk, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            return fd;
        if (errno != ENOENT && errno != ENOTDIR)
            return -errno;
        char *slash = strrchr(walk, '/');
        if (!slash)
            return -ENOENT;
        slash[slash == walk] = '\0';
    }
}

/* 1 when the folder `outer` is met on the way from the folder `inner` to the root, 0 when not, or a
 * negative errno. */
static int folder_lies_in(int inner, const struct stat *outer)
{
    CLEANUP_FD int at = fcntl(inner, F_DUPFD_CLOEXEC, 3);
    struct stat here, above;
    if (at < 0 || fstat(at, &here))
        return -errno;
    for (;;) {
        if (here.st_dev == outer->st_dev && here.st_ino == outer->st_ino)
            return 1;
        int parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0)
            return -errno;
        close(at);
        at = parent;
        if (fstat(at, &above))
            return -errno;
        if (above.st_dev == here.st_dev && above.st_ino == here.st_ino)
            return 0;
        here = above;
    }
}

/* Judges one resolved protected path against one mount. */
static int mount_check_path(const struct mount *mount, const char *what, const char *path,
                            struct failure *why)
{
    CLEANUP_FD int folder = open_nearest_folder(path);
    struct stat mounted, status;
    if (folder < 0)
        return failure_errno(why, -folder, "%s %s", what, path);
    if (fstat(mount->fd, &mounted))
        return failure_errno(why, errno, "mount %s", mount->real);
    int inside = folder_lies_in(folder, &mounted);
    if (inside == 1)
        return failure_set(why, EPERM, "mount %s refused: it contains %s %s", mount->real, what,
                           path);
    /* lies in: only where the protected path is itself a folder */
    int within = 0;
    if (inside == 0 && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        within = folder_lies_in(mount->fd, &status);
    if (within == 1)
        return failure_set(why, EPERM, "mount %s refused: it lies in %s %s", mount->real, what,
                           path);
    int error = inside < 0 ? inside : within;
    return error < 0 ? failure_errno(why, -error, "%s %s", what, path) : 0;
}

/* Where the part of a path begins that has no ".." in it: before, one leaves a folder without any link. */
static size_t behind_last_parent(const char *path)
{
    size_t begin = 0;
    for (size_t at = 0; path[at]; at++)
        if (strncmp(path + at, "..", 2) == 0 && (at == 0 || path[at - 1] == '/') &&
            (path[at + 2] == '/' || path[at + 2] == '\0'))
            begin = at + 2;
    return begin;
}

/* 1 when the way to the mount's folder goes through `outer` and out of it again by a symbolic link. */
static int leads_out_of(const struct mount *mount, const struct stat *outer)
{
    const char *path = mount->spec.host;
    char part[PATH_MAX];
    int inside = folder_lies_in(mount->fd, outer);
    for (size_t at = behind_last_parent(path); inside == 0 && at <= strlen(path); at++) {
        if (at > 0 && path[at] != '/' && path[at] != '\0')
            continue; /* at 0: the root, or the working directory */
        snprintf(part, sizeof(part), "%s%.*s", path[0] == '/' ? "" : "./", (int)at, path);
        CLEANUP_FD int folder = open(part[0] ? part : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int result = folder < 0 ? -errno : folder_lies_in(folder, outer);
        if (result != 0)
            return result;
    }
    return inside < 0 ? inside : 0;
}

static int check_links(const struct mount_table *table, const struct mount *mount,
                       struct failure *why)
{
    for (unsigned i = 0; i < table->count; i++) {
        const struct mount *other = &table->entries[i];
        struct stat outer;
        if (other == mount || other->spec.readonly)
            continue;
        if (fstat(other->fd, &outer))
            return failure_errno(why, errno, "mount %s", other->real);
        int result = leads_out_of(mount, &outer);
        if (result < 0)
            return failure_errno(why, -result, "mount %s", mount->spec.host);
        if (result > 0)
            return failure_set(why, EPERM,
                               "mount %s refused: it is %s by a symbolic link in %s, where a "
                               "sandbox can write",
                               mount->spec.host, mount->real, other->real);
    }
    return 0;
}

int mount_check(const struct mount_table *table, const struct protected_path *protected_paths,
                unsigned count, struct failure *why)
{
    for (unsigned i = 0; i < table->count; i++) {
        int linked = check_links(table, &table->entries[i], why);
        if (linked)
            return linked;
        for (unsigned j = 0; j < count; j++) {
            const struct protected_path *one = &protected_paths[j];
            if (!one->path || !one->path[0] ||
                (one->writable_only && table->entries[i].spec.readonly))
                continue;
            char real[PATH_MAX];
            /* the link's own folder counts as well as its target's: both decide what is read */
            int result = mount_check_path(&table->entries[i], one->what, one->path, why);
            if (!result && realpath(one->path, real))
                result = mount_check_path(&table->entries[i], one->what, real, why);
            if (result)
                return result;
        }
    }
    return 0;
}

bool mount_writable_by(const struct mount *mount, uid_t uid, gid_t gid)
{
    if (mount->uid == uid)
        return mount->mode & S_IWUSR;
    if (mount->gid == gid)
        return mount->mode & S_IWGRP;
    return mount->mode & S_IWOTH;
}
