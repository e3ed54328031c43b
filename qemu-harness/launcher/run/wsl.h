/* run --wsl: the sandbox in a WSL distribution instead of a machine of its own.
 *
 * There is no Windows here: codev-rig (qemu-harness/wsl-rig) boots a machine that behaves as WSL's does and has a
 * stand-in for wsl.exe. What an app on Windows does, this does:
 *
 *     wsl --import NAME FOLDER rootfs.tar                      once
 *     wsl -d NAME -u root --exec /usr/sbin/codev-init --wsl    the control channel is its input and output
 *     connect to the way in's port on 127.0.0.1                WSL forwards it into the distribution's network
 *
 *                      a rig of our own (no --wsl-rig)        a rig that runs already
 *     its life         begins and ends with the sandbox       somebody else's
 *     mounts           each a Windows drive, D: onwards       must lie on one of its drives
 *     read-only        the drive is (QEMU)                    must lie on a drive that is
 *     an erofs image   is a disk instead of an import         must be a disk already
 */
#ifndef QEMU_HARNESS_LAUNCHER_RUN_WSL_H
#define QEMU_HARNESS_LAUNCHER_RUN_WSL_H

#include <limits.h>
#include <stdbool.h>

#include "qemu-harness/launcher/folders/identity.h"
#include "qemu-harness/launcher/folders/mount_check.h"
#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/host/processes.h"
#include "qemu-harness/launcher/host/run_folder.h"

#define WSL_WAY_IN_LISTEN "tcp:127.0.0.1:"

struct wsl {
    bool wanted;            /* --wsl */
    bool own;               /* the rig is ours */
    char program[PATH_MAX]; /* codev-rig */
    char image_path[PATH_MAX];
    bool image_is_disk;        /* it is an erofs image, not an archive */
    char folder[PATH_MAX];     /* of the rig */
    char (*sources)[PATH_MAX]; /* of each mount, C:\..., on the heap */
};

/* Finds codev-rig and the image, and gives each mount its Windows name. 0 or a negative errno. */
int wsl_open(struct wsl *wsl, const struct options *options, const struct run_folder *folder,
             struct failure *why);
int wsl_name_mounts(struct wsl *wsl, const struct mount_table *mounts, struct failure *why);
void wsl_close(struct wsl *wsl);

/* Starts the rig, unless one runs, and codev-init in it, with standard error on `diagnostics`. The descriptor of
 * the control channel, or a negative errno. */
int wsl_start(const struct wsl *wsl, const struct options *options,
              const struct mount_table *mounts, const struct account *account, int diagnostics,
              struct process_table *processes, struct failure *why);

/* Makes `path` lead to the way in, as `ready` names it. 0 or a negative errno. */
int wsl_forward(const struct wsl *wsl, const char *path, const char *way_in,
                struct process_table *processes, struct failure *why);

#endif
