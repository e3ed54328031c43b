/* The event loop: from the server's start to its end. */
#ifndef INIT_SUPERVISE_H
#define INIT_SUPERVISE_H

#include <stdbool.h>

#include "init/sandbox.h"

/* The server was started. */
void supervise_begin(struct sandbox *sandbox);

/* Runs the loop until the server is ready, or until nothing of it is left; true when it is ready.
 * Does not return when the sandbox ends for another reason. */
bool supervise_until_ready(struct sandbox *sandbox);
void supervise_until_end(struct sandbox *sandbox);

#endif
