/* The system call filter that the server runs under (doc/design.md, "System call filters"). */
#ifndef INIT_WALLS_SECCOMP_H
#define INIT_WALLS_SECCOMP_H

#include <stdbool.h>

struct seccomp_filter;

/* Builds the filter. `user_namespaces` allows namespaces and mounts, which the kernel's own checks
 * then guard. 0, or -E2BIG when the tables are too long (a unit test builds both forms). */
int seccomp_server_filter(struct seccomp_filter *filter, bool user_namespaces);

/* Loads it into the calling process, which must have no_new_privs set. 0 or a negative errno. */
int seccomp_load_server_filter(bool user_namespaces);

#endif
