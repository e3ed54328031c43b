/* One --mount HOST[:GUEST[:ro|rw]] taken apart. Pure text: no file is looked at.
 *
 * Folder names may hold anything, colons too. So a colon separates only where that cannot be missed:
 * the last `:ro` or `:rw`, and before it the first `:/`, since a guest path is absolute. `\:` is a colon
 * and `\\` a backslash, for the rare name that this rule would misread; any other backslash stands for
 * itself.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_MOUNT_SPEC_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_MOUNT_SPEC_H

#include <limits.h>
#include <stdbool.h>

#include "common/os/failure.h"

struct mount_spec {
    char host[PATH_MAX];
    char guest[PATH_MAX]; /* "" when not given: mount_spec_default_guest makes one */
    bool readonly;
};

/* 0, or -EINVAL (empty host, guest path neither absolute nor normal), -ENAMETOOLONG. */
int mount_spec_parse(struct mount_spec *out, const char *text, struct failure *why);

/* Fills in /workspace/NAME when no guest path was given, NAME the last component of the host path as
 * typed, or of `real` (absolute, normal) where that says nothing (".", "..", "/"). */
int mount_spec_default_guest(struct mount_spec *spec, const char *real, struct failure *why);

#endif
