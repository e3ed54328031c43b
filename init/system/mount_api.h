/* The kernel's mount interface by file descriptors (Linux 5.2; mount_setattr: 5.12).
 *
 * A context is configured key by key and becomes a detached mount, which is attached to an open
 * directory. There is no option string, so a name may hold any byte that the file system allows;
 * and no path is resolved twice, so nothing can be replaced between a check and its use. musl has
 * no functions for these calls. All return a descriptor or 0, or a negative errno.
 */
#ifndef INIT_SYSTEM_MOUNT_API_H
#define INIT_SYSTEM_MOUNT_API_H

#include <stddef.h>

/* MOUNT_ATTR_* of linux/mount.h, which conflicts with sys/mount.h */
#define MOUNT_FLAG_READONLY 0x1u
#define MOUNT_FLAG_NOSUID 0x2u
#define MOUNT_FLAG_NODEV 0x4u
#define MOUNT_FLAG_NOEXEC 0x8u

/* A context for a new file system of this kind. */
int mount_context_open(const char *filesystem);

/* Its options: key=value, and a key alone. */
int mount_context_string(int context, const char *key, const char *value);
int mount_context_flag(int context, const char *key);

/* Makes the file system and a detached mount of it with these flags. Returns the mount. */
int mount_context_create(int context, unsigned flags);

/* The file system's own message about the last failure, one line, or "". */
void mount_context_reason(int context, char *out, size_t size);

/* A detached copy of the mounts at and below an open directory, with these flags added to each. */
int mount_copy_tree(int directory, unsigned flags);

/* Puts a detached mount on an open directory. */
int mount_attach(int mount, int target);

/* Turns the whole file system behind a mount read-only, which writes out what it still holds. */
int mount_make_readonly(int mount);

#endif
