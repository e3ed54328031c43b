/* The broker's own process: hardening, signals, standard input. */
#ifndef HOST_BROKER_BASE_PROCESS_H
#define HOST_BROKER_BASE_PROCESS_H

#include <stdbool.h>

#include "common/os/failure.h"

/* Turns off core dumps, ptrace by other processes of the user, and SIGPIPE; raises the limit of
 * descriptors to the hard limit. */
void process_harden(void);

/* What the system, the user or the app may ask of the process. */
enum process_request {
    PROCESS_CARRY_ON, /* nothing was asked */
    PROCESS_END,      /* SIGTERM, SIGINT */
    PROCESS_RELOAD,   /* SIGHUP */
};

/* A descriptor that is readable when there is a request. To be called before threads are made: they
 * inherit the mask of signals. The descriptor, or a negative errno with a reason. */
int process_open_requests(struct failure *why);

/* The next request; never waits. */
enum process_request process_read_request(int fd);

/* True when standard input is a pipe or socket: its end then means that the app has ended. */
bool process_input_is_lifeline(void);

/* Reads and drops input; true at its end. To be called when it is readable. */
bool process_input_ended(void);

#endif
