/* The signals that codev-init waits for. */
#ifndef INIT_SYSTEM_SIGNALS_H
#define INIT_SYSTEM_SIGNALS_H

#include "common/os/failure.h"

/* Blocks SIGCHLD and the signals that are passed on to the server, and opens a signalfd(2) for
 * them. SIGPIPE is ignored from then on. The descriptor or a negative errno. */
int signals_open(struct failure *why);

#endif
