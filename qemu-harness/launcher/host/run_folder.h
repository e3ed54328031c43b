/* The folder of one run: sockets and small files, mode 0700, under XDG_RUNTIME_DIR or else /tmp.
 *
 * This program removes it whenever it ends. After SIGKILL, the next start removes it: the owner
 * of a folder holds a lock (flock(2)) on its file `lock` as long as it lives, so a folder whose
 * lock is free has no owner. A folder gets its final name only once it is locked, so no start
 * finds a new folder unlocked under that name. Only folders of our own user are touched, one
 * level deep, without following symbolic links.
 */
#ifndef QEMU_HARNESS_LAUNCHER_HOST_RUN_FOLDER_H
#define QEMU_HARNESS_LAUNCHER_HOST_RUN_FOLDER_H

#include "common/os/failure.h"

/* Leaves room for "/vsock.sock_4294967295" in a sockaddr_un. */
#define RUN_FOLDER_PATH_MAX 80
#define RUN_PATH_MAX 108

struct run_folder {
    char path[RUN_FOLDER_PATH_MAX]; /* absolute, without symbolic links */
    int lock;                       /* the locked file */
};

/* Removes the folders that earlier runs left, then makes one. 0 or a negative errno. */
int run_folder_make(struct run_folder *folder, struct failure *why);

/* Writes PATH/NAME, which always fits: names are short. */
void run_folder_name(const struct run_folder *folder, char out[RUN_PATH_MAX], const char *name);

/* Removes the folder and the files in it, if there is one. */
void run_folder_remove(struct run_folder *folder);

#endif
