/* Finds programs and files; Linux tells the path of our own executable in /proc/self/exe. */
#include "qemu-harness/launcher/host/programs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/io.h"

const char program_own[] = "/proc/self/exe";

int program_beside(char out[PATH_MAX], const char *relative)
{
    char own[PATH_MAX];
    ssize_t length = readlink(program_own, own, sizeof(own) - 1);
    if (length < 0)
        return -errno;
    own[length] = '\0';
    char *slash = strrchr(own, '/');
    if (!slash)
        return -ENOENT;
    slash[1] = '\0';
    return snprintf(out, PATH_MAX, "%s%s", own, relative) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* The first executable of that name in PATH. */
static int find_in_path(char out[PATH_MAX], const char *name)
{
    const char *path = getenv("PATH");
    char folder[PATH_MAX];
    if (!path)
        path = "/usr/bin:/bin";
    while (io_next_path(&path, folder))
        if (snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && access(out, X_OK) == 0)
            return 0;
    return -ENOENT;
}

int program_find(char out[PATH_MAX], const char *chosen, const char *beside, const char *name,
                 struct failure *why)
{
    if (chosen) {
        if (snprintf(out, PATH_MAX, "%s", chosen) >= PATH_MAX)
            return failure_errno(why, ENAMETOOLONG, "%s", chosen);
        return access(out, X_OK) == 0 ? 0 : failure_errno(why, errno, "%s", chosen);
    }
    if (beside && program_beside(out, beside) == 0 && access(out, X_OK) == 0)
        return 0;
    if (find_in_path(out, name) == 0)
        return 0;
    return failure_set(why, ENOENT, "%s is neither installed nor beside this program", name);
}
