/* The ids of the sandbox, inside and on the host.
 *
 * Run by a user: the ids are the user's. Run by root: codev gets the ids of the owner of the
 * first writable mount that is not root's, else 1000, and QEMU and the file servers take the same
 * ids. So the guest can do to the folders what that account could do on this host, and new files
 * belong to it. These processes keep no capability.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_IDENTITY_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_IDENTITY_H

#include <sys/types.h>

#include "qemu-harness/launcher/folders/mount_check.h"

struct account {
    uid_t uid;
    gid_t gid;
};

/* Chooses the ids of the guest's account, and of children when we are root. */
void account_choose(struct account *account, const struct mount_table *mounts);

/* The identity that a child takes between fork and exec. */
struct identity {
    struct account account;
    gid_t extra_group; /* the one supplementary group (for /dev/kvm); (gid_t)-1: none */
    bool keep_chroot;  /* keeps CAP_SYS_CHROOT and CAP_SETPCAP, which virtiofsd drops itself */
};

/* Takes the ids when we are root, drops every capability, sets no_new_privs, and loads the filter
 * that refuses set-uid modes (set_uid_filter.h). 0 or a negative errno. */
int identity_take(const struct identity *identity, struct failure *why);

/* For spawn.prepare: drops the capabilities and keeps the ids. */
int identity_drop_capabilities(void *unused, struct failure *why);

#endif
