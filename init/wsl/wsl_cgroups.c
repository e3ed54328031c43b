/* Makes and removes the cgroups of a sandbox in WSL.
 *
 * Other sandboxes start and end at the same time, so all changes below `codev` are made under a
 * lock on that directory. Under this lock an empty group is the rest of a sandbox that was killed
 * and is removed; the group of a running sandbox holds at least PID 1.
 *
 * PID 1 enters ID first, before ID passes controllers on (a group with processes cannot), makes it
 * the root of its cgroup namespace, and then enters `init`. Later moves are within that namespace,
 * as the mount option nsdelegate requires.
 */
#include "init/wsl/wsl_cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/wire/guest_path.h"
#include "init/system/mount_api.h"
#include "init/system/text.h"

#define MOUNTS_TEXT_MAX 65536
#define GROUP_PATH_MAX 1024
#define REMOVE_ATTEMPTS 50
#define REMOVE_PAUSE_NS 20000000

static const char *const parts[] = {"init", "server", "relay"};

/* ---- where cgroup2 is ---- */

/* The path behind "0::" in /proc/self/cgroup. */
static bool find_own_path(char out[GROUP_PATH_MAX])
{
    static char text[4096];

    if (io_read_file(AT_FDCWD, "/proc/self/cgroup", 0, text, sizeof(text)) < 0)
        return false;
    for (char *line = text, *end; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n' ? (*end = '\0', 1) : 0;
        if (strncmp(line, "0::/", 4) == 0)
            return snprintf(out, GROUP_PATH_MAX, "%s", line + 3) < GROUP_PATH_MAX;
    }
    return false;
}

/* Root and mount point of one line of /proc/self/mountinfo (proc(5)); true when it is a cgroup2. */
static bool parse_mount(char *line, char **root, char **point)
{
    char *type = NULL, *rest = line;
    unsigned number = 0;

    for (char *word; (word = strsep(&rest, " ")); number++) {
        if (number == 3)
            *root = word;
        if (number == 4)
            *point = word;
        if (strcmp(word, "-") == 0)
            type = rest;
    }
    return type && number > 6 && strncmp(type, "cgroup2", 7) == 0;
}

int wsl_cgroups_find(void)
{
    static char text[MOUNTS_TEXT_MAX], own[GROUP_PATH_MAX], path[2 * GROUP_PATH_MAX];
    char *rest = text, *root = NULL, *point = NULL;

    if (!find_own_path(own) ||
        io_read_file(AT_FDCWD, "/proc/self/mountinfo", 0, text, sizeof(text)) < 0)
        return -ENOENT;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!parse_mount(line, &root, &point))
            continue;
        bool whole = strcmp(root, "/") == 0;
        if (!whole && !guest_path_is_below(own, root))
            continue;
        snprintf(path, sizeof(path), "%s%s", point, own + (whole ? 0 : strlen(root)));
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            return fd;
    }
    return -ENOENT;
}

/* ---- leftovers ---- */

/* Removes an empty group; true when it does not exist any more. Under the lock. */
static bool remove_group(int codev, const char *name)
{
    CLEANUP_FD int group = openat(codev, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (group < 0)
        return errno == ENOENT;
    if (cgroup_populated(group))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        (void)unlinkat(group, parts[i], AT_REMOVEDIR);
    return unlinkat(codev, name, AT_REMOVEDIR) == 0;
}

static void sweep(int codev)
{
    int copy = openat(codev, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);

    if (!list) {
        fd_close(&copy);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(list));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            (void)remove_group(codev, entry->d_name);
    closedir(list);
}

/* `codev`, made when it is not there, and locked. */
static int open_codev(int own_fd, struct failure *why)
{
    for (int attempt = 0; attempt < REMOVE_ATTEMPTS; attempt++) {
        struct stat locked, named;
        if (mkdirat(own_fd, "codev", 0755) < 0 && errno != EEXIST)
            return failure_errno(why, errno, "make the cgroup codev");
        CLEANUP_FD int codev = openat(own_fd, "codev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (codev < 0 && errno == ENOENT)
            continue; /* another sandbox has just removed it */
        if (codev < 0 || flock(codev, LOCK_EX) < 0 || fstat(codev, &locked) < 0)
            return failure_errno(why, errno, "lock the cgroup codev");
        if (fstatat(own_fd, "codev", &named, 0) == 0 && named.st_ino == locked.st_ino)
            return fd_steal(&codev);
    }
    return failure_set(why, EAGAIN, "the cgroup codev is removed again and again");
}

/* ---- making them ---- */

/* Makes ID and enters it. */
static int enter_id(int codev, const char *id, struct failure *why)
{
    sweep(codev);
    if (!remove_group(codev, id))
        return failure_set(why, EEXIST, "a sandbox with the id %s is running", id);
    CLEANUP_FD int group = cgroup_make(codev, id, why);
    if (group < 0)
        return group;
    int result = cgroup_enter(group, why);
    return result < 0 ? result : fd_steal(&group);
}

static int split(struct cgroups *groups, int group, struct failure *why)
{
    CLEANUP_FD int init = cgroup_make(group, "init", why);
    if (init < 0)
        return init;
    CLEANUP_FD int server = cgroup_make(group, "server", why);
    if (server < 0)
        return server;
    CLEANUP_FD int relay = cgroup_make(group, "relay", why);
    if (relay < 0)
        return relay;
    int result = cgroup_enter(init, why);
    if (result < 0)
        return result;
    groups->server_fd = fd_steal(&server);
    groups->relay_fd = fd_steal(&relay);
    return 0;
}

/* Shows the limits read-only; optional, since a kernel may refuse it. */
static void mount_view(void)
{
    CLEANUP_FD int context = mount_context_open("cgroup2");
    CLEANUP_FD int view =
        context < 0 ? -1
                    : mount_context_create(context, MOUNT_FLAG_READONLY | MOUNT_FLAG_NOSUID |
                                                        MOUNT_FLAG_NODEV | MOUNT_FLAG_NOEXEC);
    CLEANUP_FD int target = open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (view >= 0 && target >= 0)
        (void)mount_attach(view, target);
}

static int create(struct cgroups *groups, int own_fd, const struct boot_config *config,
                  struct failure *warning, struct failure *why)
{
    CLEANUP_FD int codev = open_codev(own_fd, why);
    if (codev < 0)
        return codev;
    CLEANUP_FD int group = enter_id(codev, config->id, why);
    if (group < 0)
        return group;
    (void)flock(codev, LOCK_UN);
    bool has_namespace = unshare(CLONE_NEWCGROUP) == 0;
    int result = split(groups, group, why);
    if (result < 0)
        return result;
    if (has_namespace)
        mount_view();
    const int way_down[] = {own_fd, codev, group};
    if (cgroups_limit(groups, way_down, ARRAY_LENGTH(way_down), config, warning) < 0)
        (void)failure_prefix(warning, 0, "limits.pids and limits.memory_mib are not in force");
    return 0;
}

int wsl_cgroups_create(struct cgroups *groups, int own_fd, const struct boot_config *config,
                       struct failure *warning, struct failure *why)
{
    *groups = (struct cgroups){.server_fd = -1, .relay_fd = -1};
    warning->text[0] = '\0';
    if (own_fd < 0) {
        (void)failure_set(warning, 0,
                          "there is no cgroup2 here: limits.pids and limits.memory_mib are not in "
                          "force");
        return 0;
    }
    int result = create(groups, own_fd, config, warning, why);
    if (result == 0 || result == -EEXIST)
        return result;
    (void)failure_set(warning, 0, "limits.pids and limits.memory_mib are not in force: %s",
                      why->text);
    return 0;
}

void wsl_cgroups_remove(int own_fd, const char *id)
{
    const struct timespec pause = {.tv_nsec = REMOVE_PAUSE_NS};
    struct failure why;

    if (own_fd < 0 || id[0] == '\0')
        return;
    CLEANUP_FD int codev = open_codev(own_fd, &why);
    for (int attempt = 0; codev >= 0 && attempt < REMOVE_ATTEMPTS; attempt++) {
        if (remove_group(codev, id))
            break;
        (void)nanosleep(&pause, NULL);
    }
    (void)unlinkat(own_fd, "codev", AT_REMOVEDIR); /* works when it is empty */
}
