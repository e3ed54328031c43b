/* Git's system-wide settings for the mounts. */
#ifndef INIT_FOLDERS_GITCONFIG_H
#define INIT_FOLDERS_GITCONFIG_H

#include <stddef.h>

#include "init/config/boot_config.h"

/* Writes `directory = "..."`, quoted as git-config(1) reads it, with `suffix` behind the path, then
 * a newline and a NUL. The length without NUL, or -ENOSPC. */
int gitconfig_directory_line(char *out, size_t size, const char *path, const char *suffix);

/* Appends safe.directory for every mount to /etc/gitconfig. */
int gitconfig_write(const struct boot_config *config, struct failure *why);

#endif
