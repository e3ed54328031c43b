/* Stage `account`: the image's ordinary account gets the ids that the host asked for. */
#ifndef INIT_MACHINE_ACCOUNT_H
#define INIT_MACHINE_ACCOUNT_H

#include <sys/types.h>

#include "init/config/boot_config.h"
#include "init/machine/account_files.h"

#define RELAY_ACCOUNT "codev-relay"

/* Finds the configured account in /etc/passwd and, when it shall have other ids, rewrites passwd
 * and group and makes it the owner of its home directory. Before the mounts. uid 0, gid 0, and the
 * uid or primary group of another account are refused. Supplementary groups of the image have no
 * effect: the drop clears them. A home directory of more than 4096 entries is refused. */
int account_apply(const struct boot_config *config, struct account *out, struct failure *why);

/* The same below an open root directory, with the ids as arguments. */
int account_apply_in(int root, const char *name, uid_t uid, gid_t gid, struct account *out,
                     struct failure *why);

/* Finds an account by name. -ENOENT when the image does not have it. */
int account_find(const char *name, struct account *out, struct failure *why);

#endif
