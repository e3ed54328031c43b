/* Makes and removes the runtime folder, and removes those whose owner is gone. */
#include "qemu-harness/launcher/host/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/os/cleanup.h"

#define FOLDER_PREFIX "codev-sandbox-"
#define YOUNG_PREFIX "codev-sandbox.new-" /* made, not yet locked */
#define YOUNG_SECONDS 300                 /* an older one has no owner any more */
#define LOCK_NAME "lock"

/* Removes a folder and the files in it. It has no sub-folders. */
static void remove_folder(int base, const char *name, int folder)
{
    int listing = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = listing < 0 ? NULL : fdopendir(listing);
    if (!directory) {
        fd_close(&listing);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(folder, entry->d_name, 0);
    closedir(directory);
    unlinkat(base, name, AT_REMOVEDIR);
}

/* Removes one entry of the base folder if it is a runtime folder of our user without an owner. */
static void sweep_one(int base, const char *name)
{
    bool young = strncmp(name, YOUNG_PREFIX, strlen(YOUNG_PREFIX)) == 0;
    if (!young && strncmp(name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) != 0)
        return;
    CLEANUP_FD int folder = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (folder < 0 || fstat(folder, &status) || status.st_uid != geteuid() ||
        (status.st_mode & 07777) != 0700)
        return;
    CLEANUP_FD int lock = openat(folder, LOCK_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (young && time(NULL) - status.st_mtime < YOUNG_SECONDS)
        return;
    if (lock < 0 ? !young : flock(lock, LOCK_EX | LOCK_NB) != 0)
        return;
    remove_folder(base, name, folder);
}

static void sweep(int base)
{
    int listing = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = listing < 0 ? NULL : fdopendir(listing);
    if (!directory) {
        fd_close(&listing);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        sweep_one(base, entry->d_name);
    closedir(directory);
}

/* The base folder without symbolic links: XDG_RUNTIME_DIR if it is usable, else /tmp. */
static int find_base(char real[PATH_MAX], struct failure *why)
{
    const char *wanted = getenv("XDG_RUNTIME_DIR");
    if (wanted && wanted[0] == '/' && access(wanted, W_OK | X_OK) == 0 && realpath(wanted, real) &&
        strlen(real) + strlen("/" YOUNG_PREFIX "XXXXXX") < RUN_FOLDER_PATH_MAX)
        return 0;
    if (!realpath("/tmp", real))
        return failure_errno(why, errno, "/tmp");
    return 0;
}

static int make_locked(struct run_folder *folder, const char *base, struct failure *why)
{
    char young[RUN_FOLDER_PATH_MAX];
    if (snprintf(young, sizeof(young), "%s/" YOUNG_PREFIX "XXXXXX", base) >= (int)sizeof(young))
        return failure_set(why, ENAMETOOLONG, "runtime folder: %s is too long", base);
    if (!mkdtemp(young))
        return failure_errno(why, errno, "runtime folder in %s", base);
    CLEANUP_FD int directory = open(young, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_FD int lock = -1;
    if (directory >= 0)
        lock = openat(directory, LOCK_NAME, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const char *random = young + strlen(young) - 6;
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) ||
        snprintf(folder->path, sizeof(folder->path), "%s/" FOLDER_PREFIX "%s", base, random) < 0 ||
        rename(young, folder->path)) {
        int error = errno;
        if (directory >= 0)
            unlinkat(directory, LOCK_NAME, 0);
        rmdir(young);
        folder->path[0] = '\0';
        return failure_errno(why, error, "runtime folder in %s", base);
    }
    folder->lock = fd_steal(&lock);
    return 0;
}

int run_folder_make(struct run_folder *folder, struct failure *why)
{
    char base[PATH_MAX];
    *folder = (struct run_folder){.lock = -1};
    int result = find_base(base, why);
    if (result)
        return result;
    CLEANUP_FD int directory = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return failure_errno(why, errno, "%s", base);
    sweep(directory);
    return make_locked(folder, base, why);
}

void run_folder_name(const struct run_folder *folder, char out[RUN_PATH_MAX], const char *name)
{
    snprintf(out, RUN_PATH_MAX, "%s/%s", folder->path, name);
}

void run_folder_remove(struct run_folder *folder)
{
    if (!folder->path[0])
        return;
    CLEANUP_FD int directory = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory >= 0)
        remove_folder(AT_FDCWD, folder->path, directory);
    fd_close(&folder->lock);
    folder->path[0] = '\0';
}
