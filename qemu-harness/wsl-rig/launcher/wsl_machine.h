/* The WSL rig as a machine: the sandbox in a WSL distribution.
 *
 * There is no Windows here: codev-rig (qemu-harness/wsl-rig) boots a machine that behaves as WSL
 * does and has a stand-in for wsl.exe. This does what an app on Windows does:
 *
 *     wsl --import NAME FOLDER rootfs.tar                      once
 *     wsl -d NAME -u root --exec /usr/sbin/codev-init --wsl    the control channel
 *     connect to the way in's port on 127.0.0.1                WSL forwards it to the distribution
 *
 *                       own rig (no --wsl-rig)               a rig that runs already
 *     its life          begins and ends with the sandbox     not ours
 *     mounts            each is a Windows drive, from D:     must lie on one of its drives
 *     read-only         the drive is (QEMU)                  must lie on a read-only drive
 *     an erofs image    is a disk instead of an import       must be a disk already
 */
#ifndef QEMU_HARNESS_WSL_RIG_LAUNCHER_WSL_MACHINE_H
#define QEMU_HARNESS_WSL_RIG_LAUNCHER_WSL_MACHINE_H

#include "qemu-harness/launcher/machine/machine.h"

extern const struct machine wsl_machine;

/* Takes the options --wsl-* out of the arguments before `--`. 0, or -EINVAL with the reason. */
int wsl_options_take(int *argc, char **argv, struct failure *why);

/* Names each mount as Windows does. `rig` is the folder of a rig that runs; NULL: a rig of our
 * own. 0 or a negative errno. */
int wsl_name_mounts(struct mount_table *mounts, const char *rig, struct failure *why);

#endif
