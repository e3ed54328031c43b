/* Parses --mount HOST[:GUEST[:ro|rw]]. Pure text: no file is looked at.
 *
 * Folder names may hold any character, colons too. So a colon separates only as the last `:ro` or
 * `:rw`, and before that as the first `:/`, since a guest path is absolute. `\:` is a colon and
 * `\\` a backslash, for a name that this rule would misread; any other backslash is an ordinary
 * character.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_MOUNT_SPEC_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_MOUNT_SPEC_H

#include <limits.h>
#include <stdbool.h>

#include "common/os/failure.h"

struct mount_spec {
    char host[PATH_MAX];
    char guest[PATH_MAX]; /* "" when not given: see mount_spec_default_guest */
    bool readonly;
};

/* 0, or -EINVAL (empty host, guest path neither absolute nor normal), -ENAMETOOLONG. */
int mount_spec_parse(struct mount_spec *out, const char *text, struct failure *why);

/* Fills in /workspace/NAME when no guest path was given. NAME is the last component of the host
 * path as typed, or of `real` (absolute, normal) when that is ".", ".." or "/". */
int mount_spec_default_guest(struct mount_spec *spec, const char *real, struct failure *why);

#endif
