/* The folders to be mounted: opened, resolved and checked before anything starts.
 *
 * A mounted folder must not contain, or lie in, a path that decides about the sandbox.
 * protected_rows in mount_check.c lists these paths. Most of them may be in a read-only mount:
 * they are no secret, and the guest cannot change them there. Files that the launcher writes are
 * listed too: in the place of the events file a guest could put a symbolic link to another file
 * of the user's, into which the next run would write. Folders are compared by device and inode
 * along the whole chain of parents, so a symbolic link or a bind mount of the same folder makes
 * no difference.
 *
 * The path of a --mount must not leave another, writable mount through a symbolic link: an
 * earlier sandbox may have made that link, and `--mount app --mount app/docs:/workspace/docs:ro`
 * would show whatever it points to.
 *
 * Each folder stays open: the file servers share the checked descriptor, whatever happens to the
 * name.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_MOUNT_CHECK_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_MOUNT_CHECK_H

#include <sys/types.h>

#include "qemu-harness/launcher/folders/mount_spec.h"
#include "qemu-harness/launcher/host/options.h"

struct mount {
    struct mount_spec spec;
    char real[PATH_MAX]; /* the host folder without symbolic links */
    const char *type;    /* the guest's `type` and `source` of the mount; the machine names them */
    char source[PATH_MAX]; /* "m0", "m1", ... */
    int fd;                /* the folder, O_RDONLY | O_DIRECTORY */
    int server;            /* virtiofs: the connection to its server, until QEMU has it; else -1 */
    uid_t uid;             /* the folder's owner */
    gid_t gid;
    mode_t mode;
};

struct mount_table {
    struct mount *entries; /* `count` of them, on the heap */
    unsigned count;
};

/* Protected paths that the launcher has found or made itself. NULL or "": there is none. */
struct found_paths {
    const char *run_folder;
    const char *this_program;
    const char *machine_program;
    const char *kernel;
    const char *image;
};

/* Where the path of a row comes from. */
enum protected_source {
    PROTECTED_OPTION,      /* a path in struct options, at `offset` */
    PROTECTED_OPTION_LIST, /* each path of a struct option_list in struct options, at `offset` */
    PROTECTED_FOUND,       /* a path in struct found_paths, at `offset` */
    PROTECTED_VARIABLE,    /* the value of the environment variable `variable` */
};

struct protected_row {
    const char *what; /* "the rules file" */
    enum protected_source source;
    size_t offset;
    const char *variable;
    bool several;          /* the variable's value is a list with colons between */
    bool readonly_allowed; /* a read-only mount may contain it */
    bool dash_is_none;     /* the value "-" names no file */
    const char *file;      /* not the path itself but this file in it; NULL: the path itself */
};

extern const struct protected_row protected_rows[];
extern const unsigned protected_row_count;

/* Opens every --mount. 0 or a negative errno with the folder's name. */
int mount_table_open(struct mount_table *table, const struct option_list *mounts,
                     struct failure *why);
void mount_table_close(struct mount_table *table);

/* Checks every mount against every protected path. 0, or -EPERM naming the mount and what it
 * reaches. For a protected path that does not exist, its nearest existing parent is checked. */
int mount_check(const struct mount_table *table, const struct options *options,
                const struct found_paths *found, struct failure *why);

/* True when an account with these ids (and no further group) may write into the folder. */
bool mount_writable_by(const struct mount *mount, uid_t uid, gid_t gid);

#endif
