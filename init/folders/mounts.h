/* Stage `mounts`: the user's folders. */
#ifndef INIT_FOLDERS_MOUNTS_H
#define INIT_FOLDERS_MOUNTS_H

#include "init/config/boot_config.h"
#include "init/machine/account.h"

/* Mounts all of them, parents before children; targets are made without following symbolic links
 * (openat2 RESOLVE_NO_SYMLINKS; new directories belong to the account only below its home or
 * /workspace's own layer), always nosuid and nodev, read-only where asked. Writes git's safe.directory to
 * /etc/gitconfig. The first failure names the folder. */
int mounts_apply(const struct boot_config *config, const struct account *account,
                 struct failure *why);

/* WSL: where to ask for what only the distribution sees (wsl_link.h). Before mounts_apply. */
void mounts_outside(int link);

/* The pure part of the order: indices, parents and the sources of binds first. -ELOOP when binds need each other. */
int mounts_order(const struct boot_config *config, unsigned order[BOOT_MOUNTS_MAX]);

/* Writes out and unmounts them, children first, also what is busy; within 3 s, since a file server may be gone.
 * Never fails. */
void mounts_undo(const struct boot_config *config);

#endif
