/* The folder of one run: sockets and small files, mode 0700, under XDG_RUNTIME_DIR or else /tmp.
 *
 * It is removed on every way out of this program. Where there is none (SIGKILL), the next start sweeps
 * it: each folder holds a file `lock` that its owner keeps locked with flock(2) as long as it lives, so
 * a folder whose lock can be had is nobody's. A folder gets its final name only once it is locked, so a
 * sweep never meets a young one without owner. Only folders of our own user are touched, one level
 * deep, without following a symbolic link.
 */
#ifndef QEMU_HARNESS_LAUNCHER_HOST_RUN_FOLDER_H
#define QEMU_HARNESS_LAUNCHER_HOST_RUN_FOLDER_H

#include "common/os/failure.h"

/* Leaves room for "/vsock.sock_4294967295" in a sockaddr_un. */
#define RUN_FOLDER_PATH_MAX 80
#define RUN_PATH_MAX 108

struct run_folder {
    char path[RUN_FOLDER_PATH_MAX]; /* absolute, without symbolic links */
    int lock;                       /* held as long as we live */
};

/* Sweeps what earlier runs left, then makes the folder. 0 or a negative errno. */
int run_folder_make(struct run_folder *folder, struct failure *why);

/* PATH/NAME. Always fits: names are short constants or numbers. */
void run_folder_name(const struct run_folder *folder, char out[RUN_PATH_MAX], const char *name);

/* Removes the folder and what is in it. Does nothing when there is none. */
void run_folder_remove(struct run_folder *folder);

#endif
