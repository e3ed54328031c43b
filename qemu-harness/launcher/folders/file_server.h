/* The servers of the mounted folders: a virtiofsd process for each, or QEMU's own 9p server.
 *
 *                 virtiofs (virtiofsd of QEMU 7.2)            9p (fsdev local, security_model=none)
 *   run by root   takes the account's ids; chroot, no         QEMU has the account's ids
 *                 capability, own mount and network namespace
 *   run by user   not possible: it insists on dropping         QEMU has the user's ids
 *                 groups, which a user cannot
 *   read-only     a read-only bind mount, recursive           readonly=on
 *
 * Root gets virtiofs where virtiofsd is installed, other users get 9p; --file-server forces
 * either. No folder's name is on a command line: the server inherits the folder as a descriptor,
 * so any name works.
 */
#ifndef QEMU_HARNESS_LAUNCHER_FOLDERS_FILE_SERVER_H
#define QEMU_HARNESS_LAUNCHER_FOLDERS_FILE_SERVER_H

#include "qemu-harness/launcher/folders/identity.h"
#include "qemu-harness/launcher/folders/mount_check.h"
#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/host/processes.h"
#include "qemu-harness/launcher/host/run_folder.h"

struct file_server {
    enum file_server_choice kind; /* VIRTIOFS or 9P, once chosen */
    char program[PATH_MAX];       /* virtiofsd */
};

/* Decides between the two. 0, or a negative errno when the one that was forced is not available. */
int file_server_choose(struct file_server *server, const struct options *options,
                       struct failure *why);

/* virtiofs: starts one process per mount, with its messages on `diagnostics`, and leaves a
 * connection to it in the mount's `server`. */
int file_server_start(const struct file_server *server, struct mount_table *mounts,
                      const struct account *account, const struct run_folder *folder,
                      struct process_table *processes, int diagnostics, struct failure *why);

#endif
