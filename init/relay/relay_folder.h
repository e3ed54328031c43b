/* WSL: the folder in which the two agents meet.
 *
 * A tmpfs that is the root of a mount namespace of its own, with two Unix sockets in it and nothing
 * else; no process but the agents ever enters it, and no path of the sandbox or of any distribution
 * leads there. Each agent has it as its whole root.
 */
#ifndef INIT_RELAY_RELAY_FOLDER_H
#define INIT_RELAY_RELAY_FOLDER_H

#include "common/os/failure.h"
#include "init/machine/account.h"

#define RELAY_FOLDER_OUT "/out" /* the outer agent listens: the way to the broker */
#define RELAY_FOLDER_IN "/in"   /* the inner agent listens: the way to the server */

struct relay_folder {
    int namespace_fd;  /* for setns(2) */
    int out_fd, in_fd; /* the listeners */
};

/* Makes it, for `owner` alone. 0, or a negative errno; nothing is open then. */
int relay_folder_make(struct relay_folder *folder, const struct account *owner,
                      struct failure *why);

#endif
