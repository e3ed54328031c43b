/* The gateway's real token: read from its file, re-read when the file changes, kept in one locked page.
 *
 * The file is looked at with stat(2) before each request, so the app renews a login by writing a file.
 * When it is gone, empty or unreadable there is no login, and every route answers 503 until it is back.
 * When it cannot be looked at for want of descriptors, the token at hand goes on.
 */
#ifndef HOST_BROKER_KEYS_CREDENTIAL_H
#define HOST_BROKER_KEYS_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "common/os/failure.h"

struct credential {
    const char *path;
    char *token;             /* in memory of its own: locked, in no core dump; NUL-terminated */
    size_t length;           /* 0: no login */
    struct timespec changed; /* of the file as last read: ctime, mtime, inode and size */
    struct timespec modified;
    ino_t inode;
    off_t size;
    bool settled; /* false: the file was so young when read that it may change unnoticed */
};

/* Reads it for the first time. 0 or a negative errno with a reason: no token, no broker. */
int credential_open(struct credential *credential, const char *path, struct failure *why);

/* Reads it again if it changed (or `always`). True when there is a login now; else *why tells. */
bool credential_refresh(struct credential *credential, bool always, struct failure *why);

/* Wipes it. */
void credential_close(struct credential *credential);

#endif
