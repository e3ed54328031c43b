/* The guest's output on its way to our standard output and standard error.
 *
 * One buffer per stream, as large as the credit that the guest has: it can always take what the guest may
 * send, and credit goes back only for what was really written. So nothing is lost, a slow reader slows
 * the guest's writer, and neither stream waits for the other. More than the credit is a guest that
 * breaks the protocol.
 *
 * Standard output is shared with whoever started us, so O_NONBLOCK must not be set on it: pipes and
 * terminals are opened anew through /proc/self/fd where that works, sockets take MSG_DONTWAIT, and for
 * everything else a write may block for a moment.
 */
#ifndef QEMU_HARNESS_OUTPUT_H
#define QEMU_HARNESS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/failure.h"
#include "common/protocol.h"

#define OUTPUT_SIZE CONTROL_CREDIT_INITIAL

struct output {
    int fd;      /* ours, or -1 once the reader is gone */
    bool socket; /* written with send(2) */
    size_t start, length;
    size_t owed;          /* credit not yet given back */
    unsigned char *bytes; /* a ring of OUTPUT_SIZE */
};

/* For standard output (1) or standard error (2). 0 or a negative errno. */
int output_open(struct output *output, int standard, struct failure *why);
void output_close(struct output *output);

/* False when it does not fit: the guest sent more than its credit. */
bool output_put(struct output *output, const unsigned char *data, size_t length);

/* Writes what goes without blocking. A reader that has left (EPIPE) is not an error of the sandbox: what
 * comes is then thrown away, and the credit given back. */
void output_flush(struct output *output);

/* Credit to give back now: 0 until it is worth an event. */
size_t output_take_credit(struct output *output);

#endif
