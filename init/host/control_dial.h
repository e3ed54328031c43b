/* Connects the control channel of a virtual machine. */
#ifndef INIT_HOST_CONTROL_DIAL_H
#define INIT_HOST_CONTROL_DIAL_H

#include "init/host/control.h"

/* Connects to the host at the port on the kernel command line, sends what is queued (hello and the
 * stages so far) and waits for the host's first bytes, with back-off while nobody answers there,
 * until `deadline` (CLOCK_MONOTONIC, nanoseconds). A connection that ends before any byte came
 * counts as none. */
int control_dial(struct control *control, int64_t deadline, struct failure *why);

/* The port of codev.control=vsock:PORT in a kernel command line; CONTROL_PORT_DEFAULT without one,
 * -EINVAL for one that is malformed. Pure. */
int control_port_find(const char *command_line, uint32_t *port);

#endif
