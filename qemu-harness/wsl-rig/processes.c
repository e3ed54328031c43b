/* rig processes: prints a line for each process of the machine with its PID, its PID in the
 * innermost namespace, the name of its program and its network namespace. In a shell this would
 * take four programs for each process. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/io.h"
#include "qemu-harness/wsl-rig/rig.h"

#define STATUS_MAX 4096

static const char *read_link(const char *pid, const char *what, char out[PATH_MAX])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%.16s/%s", pid, what);
    ssize_t length = readlink(path, out, PATH_MAX - 1);
    if (length <= 0)
        return NULL;
    out[length] = '\0';
    const char *slash = strrchr(out, '/');
    return slash ? slash + 1 : out;
}

/* Returns the last number of the line NSpid. */
static long innermost(const char *pid)
{
    char path[64], text[STATUS_MAX];
    snprintf(path, sizeof(path), "/proc/%.16s/status", pid);
    if (io_read_file(AT_FDCWD, path, 0, text, sizeof(text)) <= 0)
        return 0;
    char *line = strstr(text, "\nNSpid:");
    if (!line)
        return 0;
    line[1 + strcspn(line + 1, "\n")] = '\0';
    return strtol(strrchr(line, '\t') + 1, NULL, 10);
}

int rig_processes(int argc, char **argv)
{
    DIR *folder = opendir("/proc");
    (void)argc;
    (void)argv;
    if (!folder)
        rig_die("/proc");
    for (struct dirent *entry; (entry = readdir(folder));) {
        char program[PATH_MAX], network[PATH_MAX];
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        const char *name = read_link(entry->d_name, "exe", program);
        const char *space = read_link(entry->d_name, "ns/net", network);
        if (name && space) /* a kernel thread has no program */
            printf("%s %ld %s %s\n", entry->d_name, innermost(entry->d_name), name, space);
    }
    closedir(folder);
    return 0;
}
