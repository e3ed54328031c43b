/* The signals that codev-init waits for. */
#ifndef INIT_SYSTEM_SIGNALS_H
#define INIT_SYSTEM_SIGNALS_H

#include "common/os/failure.h"

/* Blocks them and opens the signalfd(2) that reports them: SIGCHLD, and those that are passed on to
 * the server. SIGPIPE is ignored from then on. The descriptor or a negative errno. */
int signals_open(struct failure *why);

#endif
