/* Stage `account`: the image's ordinary account takes the ids that the host asked for. */
#ifndef INIT_MACHINE_ACCOUNT_H
#define INIT_MACHINE_ACCOUNT_H

#include <sys/types.h>

#include "init/config/boot_config.h"
#include "init/machine/account_files.h"

#define RELAY_ACCOUNT "codev-relay"

/* Looks the configured account up in /etc/passwd, rewrites passwd and group when other ids are
 * wanted, and then gives the home directory in the image to it: called before the mounts. uid 0,
 * gid 0, and the uid or primary group of another account are refused. Supplementary groups that the
 * image lists do not count: the drop empties them. A home of more than 4096 entries is no skeleton,
 * and refused. */
int account_apply(const struct boot_config *config, struct account *out, struct failure *why);

/* The same with another root directory, and the ids as arguments; for tests. */
int account_apply_in(int root, const char *name, uid_t uid, gid_t gid, struct account *out,
                     struct failure *why);

/* A plain look-up, for codev-relay. -ENOENT when the image has no such account. */
int account_find(const char *name, struct account *out, struct failure *why);

#endif
