/* Stage `mounts`: the user's folders. */
#ifndef INIT_FOLDERS_MOUNTS_H
#define INIT_FOLDERS_MOUNTS_H

#include "init/config/boot_config.h"
#include "init/machine/account.h"

/* Mounts all of them, parents before children, nosuid and nodev, read-only where asked. Missing
 * targets are made; see mount_target_open. Writes git's safe.directory to /etc/gitconfig. The first
 * failure names the folder. */
int mounts_apply(const struct boot_config *config, const struct account *account,
                 struct failure *why);

/* WSL: the link to the process outside (wsl_link.h), which makes mounts of what only the
 * distribution sees. Before mounts_apply. */
void mounts_outside(int link);

/* The pure parts. Are the targets allowed, and all different? -EINVAL or -EEXIST with a reason. */
int mounts_check(const struct boot_config *config, struct failure *why);

/* The mounts with parents and sources of binds first. -ELOOP when binds depend on each other. */
int mounts_order(const struct boot_config *config, const struct boot_mount *order[BOOT_MOUNTS_MAX]);

/* Writes out and unmounts them, children first, busy ones too; gives up after 3 s, since a file
 * server may be gone. Never fails. */
void mounts_undo(const struct boot_config *config);

#endif
