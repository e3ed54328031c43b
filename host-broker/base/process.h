/* What the broker asks of the system for its own process. */
#ifndef HOST_BROKER_BASE_PROCESS_H
#define HOST_BROKER_BASE_PROCESS_H

#include <stdbool.h>

#include "common/os/failure.h"

/* No core dump, no ptrace by other processes of the user, no SIGPIPE, as many descriptors as allowed. */
void process_harden(void);

/* A descriptor from which SIGTERM, SIGINT and SIGHUP are read (process_read_signal). Threads made later
 * inherit that these are blocked. The descriptor or a negative errno. */
int process_open_signals(struct failure *why);

/* The number of a signal that came, or 0. */
int process_read_signal(int fd);

/* True when standard input is a pipe or socket, so that its end tells that the app is gone. */
bool process_input_is_lifeline(void);

/* Reads and drops what is there; true at its end. */
bool process_input_ended(void);

#endif
