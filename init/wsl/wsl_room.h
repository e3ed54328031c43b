/* WSL: the folder in which the two agents meet.
 *
 * A tmpfs that is the root of a mount namespace of its own, with two Unix sockets in it and nothing else; no process
 * but the agents ever enters it, and no path of the sandbox or of any distribution leads there. Each agent has it as
 * its whole root.
 */
#ifndef INIT_WSL_WSL_ROOM_H
#define INIT_WSL_WSL_ROOM_H

#include "common/os/failure.h"
#include "init/machine/account.h"

#define ROOM_OUT "/out" /* the outer agent listens: the way to the broker */
#define ROOM_IN "/in"   /* the inner agent listens: the way to the server */

struct wsl_room {
    int namespace_fd;  /* for setns(2) */
    int out_fd, in_fd; /* the listeners */
};

/* Makes it, for `owner` alone. 0, or a negative errno; nothing is open then. */
int wsl_room_make(struct wsl_room *room, const struct account *owner, struct failure *why);

#endif
