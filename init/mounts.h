/* Stage `mounts`: the user's folders. */
#ifndef INIT_MOUNTS_H
#define INIT_MOUNTS_H

#include "init/account.h"
#include "init/boot_config.h"

/* Mounts all of them, parents before children; targets are made without following symbolic links
 * (openat2 RESOLVE_NO_SYMLINKS; new directories belong to the account only below its home or
 * /workspace's own layer), always nosuid and nodev, read-only where asked. Writes git's safe.directory to
 * /etc/gitconfig. The first failure names the folder. */
int mounts_apply(const struct boot_config *config, const struct account *account,
                 struct failure *why);

/* Unmounts them, children first, or remounts read-only what is busy; then syncs. Never fails. */
void mounts_undo(const struct boot_config *config);

#endif
