/* The gateway's token: read from its file, and again when the file changes; kept in locked pages.
 *
 * The file is checked with stat(2) before each request, so the app renews a login by writing the
 * file. While it is missing, empty or unreadable there is no login, and every route answers 503. If
 * it cannot be opened because descriptors have run out, the present token stays in use.
 */
#ifndef HOST_BROKER_KEYS_CREDENTIAL_H
#define HOST_BROKER_KEYS_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "common/os/failure.h"

struct credential {
    const char *path;
    char *token;             /* in pages of its own, locked and in no core dump; NUL-terminated */
    size_t length;           /* 0: no login */
    struct timespec changed; /* ctime, mtime, inode and size of the file when it was read */
    struct timespec modified;
    ino_t inode;
    off_t size;
    bool settled; /* false: the file was so new that a change may not show in its times */
};

/* Reads it for the first time. 0 or a negative errno with a reason. */
int credential_open(struct credential *credential, const char *path, struct failure *why);

/* Reads it again if it has changed, or `always`. True when there is a login; otherwise *why has the
 * reason. */
bool credential_refresh(struct credential *credential, bool always, struct failure *why);

void credential_close(struct credential *credential);

#endif
