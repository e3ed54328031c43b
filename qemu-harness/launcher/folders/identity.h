/* Whose ids the sandbox runs with, inside and on the host.
 *
 * Run by a user: everything is that user's. Run by root: codev gets the owner of the first writable
 * mount that is not root's own, else 1000, and QEMU and the file servers take the same ids, so that the guest
 * can do to the folders exactly what that account could do on this host, and what it makes belongs to
 * it. No capability is left to them.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_IDENTITY_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_IDENTITY_H

#include <sys/types.h>

#include "qemu-harness/launcher/folders/mount_check.h"

struct account {
    uid_t uid;
    gid_t gid;
};

/* For the guest's account, and for children when we are root. */
void account_choose(struct account *account, const struct mount_table *mounts);

/* A child's identity, taken between fork and exec. */
struct identity {
    struct account account;
    gid_t extra_group; /* (gid_t)-1: none; else the one supplementary group (for /dev/kvm) */
    bool
        keep_chroot; /* leaves CAP_SYS_CHROOT and CAP_SETPCAP to the program (virtiofsd drops them) */
};

/* Takes the ids when we are root, drops every capability, sets no_new_privs; from then on no file becomes
 * set-uid (set_uid_filter.h). */
int identity_take(const struct identity *identity, struct failure *why);

/* For spawn.prepare: keeps the ids, drops the capabilities. */
int identity_drop_capabilities(void *unused, struct failure *why);

#endif
