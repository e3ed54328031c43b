/* Opens the mounts and checks them against the table of protected paths.
 *
 * Containment is decided by inodes: `inner` lies in `outer` when the device and inode of `outer`
 * occur on the way from `inner` up to the root. */
#include "qemu-harness/launcher/folders/mount_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define APP_RULES "sandbox-egress.json" /* the broker reads it in --app-data */

#define OPTION(member) .source = PROTECTED_OPTION, .offset = offsetof(struct options, member)
#define OPTION_LIST(member)                                                                        \
    .source = PROTECTED_OPTION_LIST, .offset = offsetof(struct options, member)
#define FOUND(member) .source = PROTECTED_FOUND, .offset = offsetof(struct found_paths, member)
#define VARIABLE(name) .source = PROTECTED_VARIABLE, .variable = (name)

const struct protected_row protected_rows[] = {
    {"the runtime folder", FOUND(run_folder)},
    {"the app-data folder", OPTION(app_data)},
    {"the rules file", OPTION(app_data), .file = APP_RULES}, /* it may be a symbolic link */
    {"the rules file", OPTION(rules)},
    {"the gateway's token file", OPTION(gateway_token_file)},
    {"the CA file", OPTION_LIST(ca_files)},
    {"the kernel", FOUND(kernel), .readonly_allowed = true},
    {"the image", FOUND(image), .readonly_allowed = true},
    {"this program", FOUND(this_program), .readonly_allowed = true},
    {"the program", FOUND(machine_program), .readonly_allowed = true},
    {"the program", OPTION(broker), .readonly_allowed = true},
    {"the program", OPTION(virtiofsd), .readonly_allowed = true},
    {"the program", OPTION(vsock_device), .readonly_allowed = true},
    {"the configuration file", OPTION(config), .readonly_allowed = true},
    {"the events file", OPTION(events), .readonly_allowed = true},
    {"the console file", OPTION(console), .readonly_allowed = true},
    {"the broker's log", OPTION(broker_log), .readonly_allowed = true, .dash_is_none = true},
    /* the broker trusts these CAs too */
    {"the CA file", VARIABLE("SSL_CERT_FILE"), .readonly_allowed = true},
    {"the CA folder", VARIABLE("SSL_CERT_DIR"), .several = true, .readonly_allowed = true},
    {"the CA file", VARIABLE("NODE_EXTRA_CA_CERTS"), .readonly_allowed = true},
};
const unsigned protected_row_count = ARRAY_LENGTH(protected_rows);

static int mount_open(struct mount *mount, const char *text, struct failure *why)
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
        table->entries[i].fd = table->entries[i].server = -1;
    table->count = mounts->count;
    for (unsigned i = 0; i < mounts->count; i++) {
        int result = mount_open(&table->entries[i], mounts->items[i], why);
        if (result)
            return result;
    }
    return 0;
}

void mount_table_close(struct mount_table *table)
{
    for (unsigned i = 0; i < table->count; i++) {
        fd_close(&table->entries[i].fd);
        fd_close(&table->entries[i].server);
    }
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

/* Checks one mount against one path as it stands. */
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

/* Offset of the part of a path behind its last "..": a "..", too, leaves a folder, without any
 * link. */
static size_t behind_last_parent(const char *path)
{
    size_t begin = 0;
    for (size_t at = 0; path[at]; at++)
        if (strncmp(path + at, "..", 2) == 0 && (at == 0 || path[at - 1] == '/') &&
            (path[at + 2] == '/' || path[at + 2] == '\0'))
            begin = at + 2;
    return begin;
}

/* 1 when the path of the mount leads through `outer` and out of it again by a symbolic link, 0
 * when not, or a negative errno. */
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

/* Checks one mount against one path of a row. The folder of a symbolic link counts as well as the
 * folder of its target: both decide what is read. */
static int check_value(const struct mount *mount, const struct protected_row *row,
                       const char *value, struct failure *why)
{
    char path[PATH_MAX], real[PATH_MAX];
    if (!value || !value[0] || (row->dash_is_none && strcmp(value, "-") == 0))
        return 0;
    const char *slash = row->file ? "/" : "", *file = row->file ? row->file : "";
    if (snprintf(path, sizeof(path), "%s%s%s", value, slash, file) >= (int)sizeof(path))
        return failure_errno(why, ENAMETOOLONG, "%s %.64s...", row->what, value);
    int result = mount_check_path(mount, row->what, path, why);
    if (!result && realpath(path, real))
        result = mount_check_path(mount, row->what, real, why);
    return result;
}

static int check_variable(const struct mount *mount, const struct protected_row *row,
                          struct failure *why)
{
    const char *value = getenv(row->variable);
    char path[PATH_MAX];
    int result = 0;
    if (!row->several)
        return check_value(mount, row, value, why);
    while (!result && value && io_next_path(&value, path))
        result = check_value(mount, row, path, why);
    return result;
}

static int check_row(const struct mount *mount, const struct protected_row *row,
                     const struct options *options, const struct found_paths *found,
                     struct failure *why)
{
    const void *option = (const char *)options + row->offset;
    const struct option_list *list = option;
    int result = 0;
    if (row->readonly_allowed && mount->spec.readonly)
        return 0;
    switch (row->source) {
    case PROTECTED_OPTION:
        return check_value(mount, row, *(const char *const *)option, why);
    case PROTECTED_OPTION_LIST:
        for (unsigned i = 0; i < list->count && !result; i++)
            result = check_value(mount, row, list->items[i], why);
        return result;
    case PROTECTED_FOUND:
        return check_value(mount, row,
                           *(const char *const *)(const void *)((const char *)found + row->offset),
                           why);
    case PROTECTED_VARIABLE:
        return check_variable(mount, row, why);
    }
    return failure_set(why, EINVAL, "%s: no source", row->what);
}

int mount_check(const struct mount_table *table, const struct options *options,
                const struct found_paths *found, struct failure *why)
{
    for (unsigned i = 0; i < table->count; i++) {
        const struct mount *mount = &table->entries[i];
        int result = check_links(table, mount, why);
        for (unsigned row = 0; row < ARRAY_LENGTH(protected_rows) && !result; row++)
            result = check_row(mount, &protected_rows[row], options, found, why);
        if (result)
            return result;
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
