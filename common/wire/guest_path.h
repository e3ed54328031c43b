/* Paths in the guest: which are well formed, and where something may be mounted.
 *
 * The one definition for all who check a path: the parser of the boot configuration, the privileged
 * steps of codev-init that mount, and the launcher. Pure.
 */
#ifndef COMMON_WIRE_GUEST_PATH_H
#define COMMON_WIRE_GUEST_PATH_H

#include <stdbool.h>

/* NULL when the path is normal: absolute, without empty, "." and ".." names, without a slash at its
 * end, names of at most NAME_MAX bytes, shorter than PATH_MAX. "/" is normal. Otherwise what is
 * wrong, as words that follow the path in a message. */
const char *guest_path_fault(const char *path);

/* The same, and "/" is refused too. */
const char *guest_folder_fault(const char *path);

/* The same for the target of a mount: it is one of the folders that mounts may use or lies below
 * one, and hides no file of codev-init's own. */
const char *guest_target_fault(const char *path);

/* NAME of "/dev/NAME", or NULL for any other text: the source of a mount that is a disk. */
const char *guest_disk_name(const char *source);

/* True when `path` is `folder` or lies below it, compared by whole names. */
bool guest_path_is_below(const char *path, const char *folder);

#endif
