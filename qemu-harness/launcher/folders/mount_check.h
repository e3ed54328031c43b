/* The folders to be mounted: opened, resolved and judged before anything starts.
 *
 * A folder must not contain, nor lie in, what decides about the sandbox: the app-data folder, the rules,
 * token and CA files, the runtime folder; and, unless it is mounted read-only (they are no secret, and cannot be
 * changed then), the kernel and image, the programs that run here, the configuration file, and what we write: in the place of the events
 * file a guest could put a link to any file of the user's, for the next run to write into. Folders are compared as device and inode up the whole
 * chain of parents, so neither a symbolic link nor a bind mount of the same folder gets around it.
 *
 * Nor may the way to a folder lead out of another one that is mounted for writing: the link on it could be the work
 * of an earlier sandbox, and `--mount app --mount app/docs:/workspace/docs:ro` would show it whatever it points to.
 *
 * Each folder stays open: what was judged is what the file servers share, whatever happens to the name.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_MOUNT_CHECK_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_MOUNT_CHECK_H

#include <sys/types.h>

#include "qemu-harness/launcher/folders/mount_spec.h"
#include "qemu-harness/launcher/host/options.h"

#define MOUNT_TAG_SIZE 16

struct mount {
    struct mount_spec spec;
    char real[PATH_MAX];      /* the host folder without symbolic links */
    char tag[MOUNT_TAG_SIZE]; /* m0, m1, ...: the guest's `source` */
    int fd;                   /* the folder, O_RDONLY | O_DIRECTORY */
    uid_t uid;                /* its owner */
    gid_t gid;
    mode_t mode;
};

struct mount_table {
    struct mount *entries; /* `count` of them, on the heap */
    unsigned count;
};

/* Something a mount must not reach. */
struct protected_path {
    const char *what;   /* "the rules file" */
    const char *path;   /* NULL: there is none */
    bool writable_only; /* a read-only mount may contain it */
};

/* Opens every --mount. 0 or a negative errno with the folder's name. */
int mount_table_open(struct mount_table *table, const struct option_list *mounts,
                     struct failure *why);
void mount_table_close(struct mount_table *table);

/* 0, or -EPERM naming the mount and what it reaches. A protected path that does not exist is judged by
 * its nearest parent that does. */
int mount_check(const struct mount_table *table, const struct protected_path *protected_paths,
                unsigned count, struct failure *why);

/* True when an account with these ids (and no further group) may write into the folder. */
bool mount_writable_by(const struct mount *mount, uid_t uid, gid_t gid);

#endif
