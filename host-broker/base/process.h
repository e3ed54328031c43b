/* What the broker asks of the system for its own process. */
#ifndef HOST_BROKER_BASE_PROCESS_H
#define HOST_BROKER_BASE_PROCESS_H

#include <stdbool.h>

#include "common/os/failure.h"

/* No core dump, no ptrace by other processes of the user, no SIGPIPE, as many descriptors as allowed. */
void process_harden(void);

/* What the system, the user or the app may ask of the process. */
enum process_request {
    PROCESS_CARRY_ON, /* nothing was asked */
    PROCESS_END,      /* SIGTERM, SIGINT */
    PROCESS_RELOAD,   /* SIGHUP */
};

/* A descriptor that is readable when there is a request. To be called before threads are made, since they
 * inherit that the signals are blocked. The descriptor, or a negative errno with a reason. */
int process_open_requests(struct failure *why);

/* The next request; never waits. */
enum process_request process_read_request(int fd);

/* True when standard input is a pipe or socket, so that its end tells that the app is gone. */
bool process_input_is_lifeline(void);

/* Reads and drops what is there; true at its end. */
bool process_input_ended(void);

#endif
