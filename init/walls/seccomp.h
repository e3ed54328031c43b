/* The deny list that the server runs under (design, section 5). */
#ifndef INIT_WALLS_SECCOMP_H
#define INIT_WALLS_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>

struct sock_fprog;

/* Builds the filter for this architecture in static storage. `user_namespaces` leaves out what guards
 * namespaces and mounts, which then the kernel's own checks guard. 0, or -E2BIG when the tables have outgrown
 * the buffer (a unit test builds both forms). */
int seccomp_server_filter(struct sock_fprog *out, bool user_namespaces);

/* Loads it into the calling process, which must have no_new_privs set. 0 or a negative errno. */
int seccomp_load_server_filter(bool user_namespaces);

#endif
