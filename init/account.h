/* Stage `account`: the image's ordinary account takes the ids that the host asked for. */
#ifndef INIT_ACCOUNT_H
#define INIT_ACCOUNT_H

#include <sys/types.h>

#include "init/boot_config.h"

#define RELAY_ACCOUNT "codev-relay"
#define ACCOUNT_TEXT_MAX 128

struct account {
    char name[ACCOUNT_TEXT_MAX], home[ACCOUNT_TEXT_MAX], shell[ACCOUNT_TEXT_MAX];
    uid_t uid;
    gid_t gid;
};

/* Looks the configured account up in /etc/passwd, rewrites passwd and group when other ids are wanted
 * (uid 0, gid 0, another account's uid, and supplementary groups are refused), and gives the home
 * directory in the image (not mounts) to it. Called before the mounts. */
int account_apply(const struct boot_config *config, struct account *out, struct failure *why);

/* A plain look-up, for codev-relay. -ENOENT when the image has no such account. */
int account_find(const char *name, struct account *out, struct failure *why);

#endif
