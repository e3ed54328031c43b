/* Permissions that the broker gives up before it serves. An attacker who takes over the process
 * through a fault in a parser has the gateway's token, but no shell and none of the user's files.
 *
 * Files (Landlock, where the kernel has it): the folders of the token and CA files, /etc, /usr and
 * what name resolution and Kerberos need may be read; the log's folder may be written; sockets may
 * be removed from their folders; nothing may be executed. No TCP port may be bound, and no abstract
 * Unix socket of other processes may be reached.
 *
 * System calls (seccomp): a list of refused calls. They return errors, because libraries try calls
 * and continue without them. Refused are other programs, new processes (threads are allowed for
 * libcurl's resolver), access to other processes, unusual sockets and other ABIs.
 *
 * Child processes are therefore started before. Builds with AddressSanitizer do not confine,
 * because the leak checker traces its own process.
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
    const char *sockets[CONFINE_SOCKETS_MAX]; /* paths, removed when listeners close */
    size_t socket_count;
    bool kerberos; /* a proxy may want a ticket: those in /tmp, or named by KRB5CCNAME, are read */
};

/* Landlock for the calling thread and the threads that it starts. Sets no_new_privs. Paths that do
 * not exist are left out. 1 when it is in force, 0 if the kernel has no Landlock, or a negative
 * errno with a reason. */
int confine_files(const struct confine_needs *needs, struct failure *why);

/* seccomp; results as above. */
int confine_calls(struct failure *why);

/* Both. 0, or a negative errno with a reason: what the kernel offers must succeed. */
int confine_process(const struct confine_needs *needs, struct failure *why);

#endif
