/* What the broker gives up before it serves: should a fault in a parser of ours or of a library hand the
 * process to somebody, that somebody holds the gateway's token, but no shell and not the user's files.
 *
 *  - Files (Landlock, where the kernel has it): read below the token file's folder, those of the CA files,
 *    /etc, /usr and the few places that name resolution and Kerberos need; write in the log's folder;
 *    remove in the sockets' folders; execute nothing. No TCP port is bound any more and no abstract Unix
 *    socket of others reached.
 *  - System calls (seccomp): a deny list that returns errors, since libraries probe and go on without. No
 *    other program, no process of its own (threads are for libcurl's resolver), nothing that looks into
 *    other processes, no odd sockets, no other ABI.
 *
 * So whatever needs a process of its own is started before, and started again by that one. Builds with
 * AddressSanitizer leave all of this out: the leak checker traces its own process.
 */
#ifndef HOST_BROKER_CONFINE_CONFINE_H
#define HOST_BROKER_CONFINE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/os/failure.h"

#define CONFINE_SOCKETS_MAX 8

struct confine_needs {
    const char *token_file;
    const char *const *ca_files;
    size_t ca_file_count;
    const char *log;                          /* a path, or NULL */
    const char *sockets[CONFINE_SOCKETS_MAX]; /* paths, removed at the end */
    size_t socket_count;
    bool
        kerberos; /* a proxy may demand a ticket: those in /tmp, or where KRB5CCNAME says, are read */
};

/* Landlock for the calling thread and those it starts. Sets no_new_privs. 1 when it is in force, 0 where
 * the kernel has none, or a negative errno with a reason. A path that does not exist is not allowed. */
int confine_files(const struct confine_needs *needs, struct failure *why);

/* seccomp, likewise. */
int confine_calls(struct failure *why);

/* Both. 0, or a negative errno with a reason: what the kernel offers must work. */
int confine_process(const struct confine_needs *needs, struct failure *why);

#endif
