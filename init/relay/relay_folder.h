/* WSL: the folder with the sockets that connect the two relays.
 *
 * A tmpfs that is the root of a mount namespace of its own and holds two Unix sockets. Only the
 * relays enter it, as their root; no path of the sandbox or of a distribution leads there.
 */
#ifndef INIT_RELAY_RELAY_FOLDER_H
#define INIT_RELAY_RELAY_FOLDER_H

#include "common/os/failure.h"
#include "init/machine/account.h"

#define RELAY_FOLDER_OUT "/out" /* the outer relay listens: to the broker */
#define RELAY_FOLDER_IN "/in"   /* the inner relay listens: to the server */

struct relay_folder {
    int namespace_fd;  /* for setns(2) */
    int out_fd, in_fd; /* the listeners */
};

/* Makes it, for `owner` alone. 0, or a negative errno; nothing is open then. */
int relay_folder_make(struct relay_folder *folder, const struct account *owner,
                      struct failure *why);

#endif
