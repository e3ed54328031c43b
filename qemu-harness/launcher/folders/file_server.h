/* How the guest sees the mounted folders: a virtiofsd process for each, or QEMU's own 9p server.
 *
 *                 virtiofs (virtiofsd of QEMU 7.2)            9p (fsdev local, security_model=none)
 *   run by root   takes the account's ids; chroot, no         QEMU has the account's ids
 *                 capability, own mount and network namespace
 *   run by user   not possible: it insists on dropping         QEMU has the user's ids
 *                 groups, which a user cannot
 *   read-only     a read-only bind mount, recursive           readonly=on
 *
 * So root gets virtiofs where virtiofsd is installed, everyone else 9p; --file-server forces either. In
 * both no folder's name is on a command line: the folder is inherited as a descriptor, and so any name
 * works.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_FILE_SERVER_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_FILE_SERVER_H

#include "qemu-harness/launcher/folders/identity.h"
#include "qemu-harness/launcher/folders/mount_check.h"
#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/host/processes.h"
#include "qemu-harness/launcher/host/run_folder.h"

struct file_server {
    enum file_server_choice kind;       /* VIRTIOFS or 9P, once chosen */
    char program[PATH_MAX];             /* virtiofsd */
    int connections[OPTION_REPEAT_MAX]; /* virtiofs: one per mount, for QEMU to inherit, else -1 */
};

/* Decides between the two. 0, or a negative errno when the one forced cannot be had. */
int file_server_choose(struct file_server *server, const struct options *options,
                       struct failure *why);

/* virtiofs: starts one process per mount, its messages on `diagnostics`. */
int file_server_start(struct file_server *server, const struct mount_table *mounts,
                      const struct account *account, const struct run_folder *folder,
                      struct process_table *processes, int diagnostics, struct failure *why);

/* Closes the connections once QEMU has inherited them. */
void file_server_release(struct file_server *server);

#endif
