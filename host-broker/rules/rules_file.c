/* Reads the file sandbox-egress.json. Owner and mode are checked on the opened descriptor, so the
 * file that was checked is the file that is read. These checks are POSIX's; the parser (rules.c)
 * needs no system.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "host-broker/rules/rules.h"

#define DATABASE_ENTRY_MAX 65536 /* one entry of passwd or group with all its members */

/* True when the group is the owner's primary group, has the owner's name, and has no other members:
 * the group that useradd creates on systems with a umask of 002. */
static bool group_is_private(uid_t owner, gid_t gid)
{
    struct passwd user_entry, *user = NULL;
    struct group group_entry, *group = NULL;
    CLEANUP_FREE char *user_text = malloc(DATABASE_ENTRY_MAX);
    CLEANUP_FREE char *group_text = malloc(DATABASE_ENTRY_MAX);

    if (!user_text || !group_text ||
        getpwuid_r(owner, &user_entry, user_text, DATABASE_ENTRY_MAX, &user) != 0 || !user ||
        getgrgid_r(gid, &group_entry, group_text, DATABASE_ENTRY_MAX, &group) != 0 || !group)
        return false;
    if (user->pw_gid != gid || strcmp(user->pw_name, group->gr_name) != 0)
        return false;
    for (char **member = group->gr_mem; *member; member++)
        if (strcmp(*member, user->pw_name) != 0)
            return false;
    return true;
}

static int check_owner(const struct stat *status, const char *path, struct failure *why)
{
    if (status->st_uid != geteuid() && status->st_uid != 0)
        return failure_set(why, EPERM,
                           "rules file %s: owned by uid %u, who is neither this user (%u) nor root",
                           path, (unsigned)status->st_uid, (unsigned)geteuid());
    if (status->st_mode & S_IWOTH)
        return failure_set(why, EPERM, "rules file %s: writable by everyone (mode %04o)", path,
                           (unsigned)status->st_mode & 07777);
    if (status->st_mode & S_IWGRP && !group_is_private(status->st_uid, status->st_gid))
        return failure_set(why, EPERM,
                           "rules file %s: writable by group %u, which is not its owner's private "
                           "group (mode %04o)",
                           path, (unsigned)status->st_gid, (unsigned)status->st_mode & 07777);
    return 0;
}

int rules_load(struct rules *out, const char *path, struct failure *why)
{
    static char text[RULES_FILE_MAX + 1];
    struct stat status;

    out->count = 0;
    CLEANUP_FD int fd = io_open_regular(AT_FDCWD, path, 0, &status);
    if (fd == -EINVAL)
        return failure_set(why, EINVAL, "rules file %s: not a regular file", path);
    if (fd < 0)
        return failure_errno(why, -fd, "rules file %s", path);
    int result = check_owner(&status, path, why);
    if (result < 0)
        return result;
    ssize_t length = io_read_whole(fd, text, sizeof(text));
    if (length == -EFBIG)
        return failure_set(why, EFBIG, "rules file %s: larger than %d bytes", path, RULES_FILE_MAX);
    if (length < 0)
        return failure_errno(why, (int)-length, "rules file %s", path);
    return rules_parse(out, path, text, (size_t)length, why);
}
