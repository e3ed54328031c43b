/* Declarations that show ownership, for straight-line set-up code:
 *
 *     CLEANUP_FD int directory = open(...);
 *     ...
 *     return fd_steal(&directory);
 *
 * Objects that live in an event loop are closed explicitly instead.
 */
#ifndef COMMON_OS_CLEANUP_H
#define COMMON_OS_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Closes *fd when it is open, keeps errno, and marks it closed. */
static inline void fd_close(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
    *fd = -1;
}

/* Hands the descriptor to the caller: the variable no longer owns it. */
static inline int fd_steal(int *fd)
{
    int stolen = *fd;
    *fd = -1;
    return stolen;
}

static inline void free_pointer(void *pointer)
{
    free(*(void **)pointer);
}

#define CLEANUP_FD __attribute__((cleanup(fd_close)))
#define CLEANUP_FREE __attribute__((cleanup(free_pointer)))

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#endif
