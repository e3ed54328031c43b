/* Stage `account`: the image's ordinary account gets the ids that the host asked for.
 *
 * Files in a mounted folder keep the ids that they have on the host, so the account's are changed:
 * in passwd, in group, and in the image's home directory. This runs before any folder of the user
 * is mounted, so the home directory holds only files of the image; the walk still does not leave
 * that file system and follows no link.
 *
 * With the image's own ids nothing is written.
 */
#include "init/machine/account.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/system/mount_target.h"

#define ACCOUNT_FILE_MAX 65536
#define SKELETON_ENTRIES_MAX 4096
#define SKELETON_DEPTH_MAX 16

static char file_text[ACCOUNT_FILE_MAX], file_rewritten[ACCOUNT_FILE_MAX + 1];

static int read_file(int root, const char *path, struct failure *why)
{
    ssize_t length = io_read_file(root, path, O_NOFOLLOW, file_text, sizeof(file_text));
    return length < 0 ? failure_errno(why, (int)-length, "read /%s", path) : 0;
}

/* Writes a new file and renames it over the old one: a reader sees one or the other. */
static int replace_file(int root, const char *path, struct failure *why)
{
    char temporary[64];

    snprintf(temporary, sizeof(temporary), "%s.codev", path);
    int result = io_write_file(root, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644,
                               file_rewritten);
    if (result < 0)
        return failure_errno(why, -result, "write /%s", temporary);
    if (renameat(root, temporary, root, path) < 0)
        return failure_errno(why, errno, "replace /%s", path);
    return 0;
}

/* The walk through the home directory. */
struct skeleton_walk {
    const struct account *account;
    dev_t device;
    unsigned entries;
};

static int give_directory(struct skeleton_walk *walk, int directory, unsigned depth);

static int give_entry(struct skeleton_walk *walk, int parent, const char *name, unsigned depth)
{
    const int nofollow = AT_SYMLINK_NOFOLLOW;
    struct stat entry;

    if (++walk->entries > SKELETON_ENTRIES_MAX)
        return -E2BIG;
    if (fstatat(parent, name, &entry, nofollow) < 0)
        return -errno;
    if (S_ISDIR(entry.st_mode)) {
        CLEANUP_FD int directory =
            openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return directory < 0 ? -errno : give_directory(walk, directory, depth + 1);
    }
    return fchownat(parent, name, walk->account->uid, walk->account->gid, nofollow) < 0 ? -errno
                                                                                        : 0;
}

static int give_directory(struct skeleton_walk *walk, int directory, unsigned depth)
{
    struct stat self;
    int result = 0;

    if (depth > SKELETON_DEPTH_MAX)
        return -E2BIG;
    if (fstat(directory, &self) < 0)
        return -errno;
    /* all directories of an overlayfs have one device number; another number is another mount */
    if (depth > 0 && self.st_dev != walk->device)
        return 0;
    walk->device = self.st_dev;
    if (fchown(directory, walk->account->uid, walk->account->gid) < 0)
        return -errno;

    CLEANUP_FD int listed = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    DIR *entries = listed < 0 ? NULL : fdopendir(listed);
    if (!entries)
        return -errno;
    listed = -1; /* the stream owns it now */
    for (const struct dirent *entry; result == 0 && (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = give_entry(walk, directory, entry->d_name, depth);
    }
    closedir(entries);
    return result;
}

/* Makes the home directory when the image has none. */
static int give_home(int root, const struct account *account, struct failure *why)
{
    struct skeleton_walk walk = {.account = account};
    CLEANUP_FD int home = mount_target_open(root, account->home, 0755, NULL, why);

    if (home < 0)
        return failure_prefix(why, home, "the home directory");
    CLEANUP_FD int readable = openat(home, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = readable < 0 ? -errno : give_directory(&walk, readable, 0);
    if (result == -E2BIG)
        return failure_set(why, E2BIG,
                           "%s has more than %d entries or is deeper than %d: an image's home "
                           "is a skeleton",
                           account->home, SKELETON_ENTRIES_MAX, SKELETON_DEPTH_MAX);
    return result < 0 ? failure_errno(why, -result, "give %s to %s", account->home, account->name)
                      : 0;
}

/* `file_text` holds passwd. */
static int check_ids(const struct account *wanted, struct failure *why)
{
    char owner[ACCOUNT_TEXT_MAX];

    if (wanted->uid == 0 || wanted->gid == 0)
        return failure_set(why, EPERM, "account %s: uid and gid 0 are root's", wanted->name);
    if (passwd_uid_owner(file_text, wanted->name, wanted->uid, owner))
        return failure_set(why, EPERM, "account %s: uid %u is %s's", wanted->name, wanted->uid,
                           owner);
    if (passwd_gid_owner(file_text, wanted->name, wanted->gid, owner))
        return failure_set(why, EPERM, "account %s: gid %u is %s's", wanted->name, wanted->gid,
                           owner);
    return 0;
}

static int look_up(int root, const char *name, struct account *out, struct failure *why)
{
    int result = read_file(root, "etc/passwd", why);

    if (result < 0)
        return result;
    result = passwd_find(file_text, name, out);
    if (result == -ENOENT)
        return failure_set(why, ENOENT, "the image has no account %s", name);
    return result < 0 ? failure_set(why, EINVAL, "/etc/passwd: the line of %s is malformed", name)
                      : 0;
}

/* `file_text` holds passwd again. */
static int rewrite(int root, const struct account *now, const struct account *wanted,
                   struct failure *why)
{
    int length = passwd_rewrite(file_rewritten, sizeof(file_rewritten), file_text, wanted->name,
                                wanted->uid, wanted->gid);
    int result = length < 0 ? failure_errno(why, -length, "rewrite /etc/passwd")
                            : replace_file(root, "etc/passwd", why);

    if (result == 0)
        result = read_file(root, "etc/group", why);
    if (result < 0)
        return result;
    length =
        group_rewrite(file_rewritten, sizeof(file_rewritten), file_text, now->gid, wanted->gid);
    return length < 0 ? failure_errno(why, -length, "rewrite /etc/group")
                      : replace_file(root, "etc/group", why);
}

int account_apply_in(int root, const char *name, uid_t uid, gid_t gid, struct account *out,
                     struct failure *why)
{
    struct account now, wanted;
    int result = look_up(root, name, &now, why);

    if (result < 0)
        return result;
    wanted = now;
    if (uid != (uid_t)-1)
        wanted.uid = uid;
    if (gid != (gid_t)-1)
        wanted.gid = gid;
    result = check_ids(&wanted, why);
    if (result == 0 && (wanted.uid != now.uid || wanted.gid != now.gid)) {
        result = rewrite(root, &now, &wanted, why);
        if (result == 0)
            result = give_home(root, &wanted, why);
    }
    if (result == 0)
        *out = wanted;
    return result;
}

int account_apply(const struct boot_config *config, struct account *out, struct failure *why)
{
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        return failure_errno(why, errno, "open /");
    return account_apply_in(root, config->account_name, config->account_uid, config->account_gid,
                            out, why);
}

int account_find(const char *name, struct account *out, struct failure *why)
{
    CLEANUP_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        return failure_errno(why, errno, "open /");
    return look_up(root, name, out, why);
}
