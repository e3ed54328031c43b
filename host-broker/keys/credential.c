/* Reads the gateway's token and notices changes of its file. */
#include "host-broker/keys/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/os/memory.h"
#include "common/os/secret.h"
#include "host-broker/keys/token_text.h"

#define CREDENTIAL_MEMORY                                                                          \
    32768 /* whole pages, more than TOKEN_TEXT_MAX and white space around it */
#define SETTLED_AFTER_SECONDS 2 /* more than the resolution of any file system's time stamps */

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_unchanged(const struct credential *credential, const struct stat *info)
{
    return credential->settled && info->st_ino == credential->inode &&
           info->st_size == credential->size && same_time(info->st_ctim, credential->changed) &&
           same_time(info->st_mtim, credential->modified);
}

/* Two writes within one tick of the file system's clock leave the same time stamp: a file that was
 * read so soon after a change is read again the next time. */
static bool has_settled(const struct stat *info)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - info->st_ctim.tv_sec > SETTLED_AFTER_SECONDS;
}

static int read_token(struct credential *credential, struct failure *why)
{
    struct stat info;
    CLEANUP_FD int fd = io_open_regular(AT_FDCWD, credential->path, 0, &info);
    if (fd == -EINVAL)
        return failure_set(why, EINVAL, "read the gateway's token from %s: no regular file",
                           credential->path);
    if (fd < 0)
        return failure_errno(why, -fd, "read the gateway's token from %s", credential->path);
    secret_wipe(credential->token, CREDENTIAL_MEMORY);
    ssize_t length = io_read_full(fd, credential->token, CREDENTIAL_MEMORY - 1);
    if (length < 0)
        return failure_errno(why, (int)-length, "read the gateway's token from %s",
                             credential->path);
    int result = token_text_clean(credential->token, (size_t)length, why);
    if (result < 0)
        return failure_prefix(why, result, "the gateway's token in %s", credential->path);
    credential->length = (size_t)result;
    credential->changed = info.st_ctim;
    credential->modified = info.st_mtim;
    credential->inode = info.st_ino;
    credential->size = info.st_size;
    credential->settled = has_settled(&info);
    return 0;
}

int credential_open(struct credential *credential, const char *path, struct failure *why)
{
    *credential = (struct credential){.path = path};
    credential->token = memory_reserve(CREDENTIAL_MEMORY);
    if (!credential->token)
        return failure_set(why, ENOMEM, "reserve memory for the gateway's token");
    memory_protect(credential->token, CREDENTIAL_MEMORY);
    return read_token(credential, why);
}

/* Descriptors may have run out for a moment: that says nothing about the file. */
static bool is_shortage(int result)
{
    return result == -EMFILE || result == -ENFILE;
}

bool credential_refresh(struct credential *credential, bool always, struct failure *why)
{
    struct stat info;
    if (!always && credential->length > 0 && stat(credential->path, &info) == 0 &&
        is_unchanged(credential, &info))
        return true;
    size_t length = credential->length;
    credential->length = 0;
    int result = read_token(credential, why);
    if (result == 0)
        return true;
    if (length > 0 && is_shortage(result)) {
        credential->length = length; /* the file was not opened: the token is untouched */
        return true;
    }
    secret_wipe(credential->token, CREDENTIAL_MEMORY);
    return false;
}

void credential_close(struct credential *credential)
{
    if (!credential->token)
        return;
    secret_wipe(credential->token, CREDENTIAL_MEMORY);
    memory_free(credential->token, CREDENTIAL_MEMORY);
    *credential = (struct credential){0};
}
