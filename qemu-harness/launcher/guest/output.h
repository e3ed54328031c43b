/* The guest's output on its way to our standard output and standard error.
 *
 * Each stream has a buffer as large as the guest's credit, so there is always room for what the
 * guest may send. Credit is returned only for bytes that were written. So nothing is lost, a slow
 * reader slows the guest's writer, and neither stream waits for the other. A guest that sends
 * more than its credit violates the protocol.
 *
 * On a terminal the guest's `stdout` and `stderr` are escaped (common/text/escape.h): only a
 * command that has the terminal (`tty`) may control it. A character that was split between two
 * pieces is joined first.
 *
 * Standard output is shared with the process that started us, so O_NONBLOCK must not be set on
 * it. Pipes and terminals are opened anew where that works, sockets are written with
 * MSG_DONTWAIT, and any other write may block for a moment.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_OUTPUT_H
#define QEMU_HARNESS_LAUNCHER_GUEST_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/os/failure.h"
#include "common/wire/protocol.h"

#define OUTPUT_SIZE CONTROL_CREDIT_INITIAL
#define OUTPUT_ESCAPED_PIECE 1024 /* bytes of the guest that are escaped at a time */
#define OUTPUT_CHARACTER_MAX 4    /* UTF-8 */

struct output {
    int fd;        /* our own; -1 once the reader has closed */
    bool socket;   /* written with send(2) */
    bool terminal; /* fd is a terminal */
    bool escape;   /* control characters are escaped */
    bool last;     /* the guest sends no more */
    size_t start, length;
    size_t owed;                    /* credit to return to the guest */
    unsigned char *bytes;           /* a ring of OUTPUT_SIZE */
    char cut[OUTPUT_CHARACTER_MAX]; /* the first bytes of a character that is not complete */
    size_t cut_length;
    size_t shown_start, shown_end; /* the part of `shown` that is still to be written */
    char shown[4 * (OUTPUT_ESCAPED_PIECE + OUTPUT_CHARACTER_MAX) + 1];
};

/* For standard output (1) or standard error (2). 0 or a negative errno. */
int output_open(struct output *output, int standard, struct failure *why);
void output_close(struct output *output);

/* False when the bytes do not fit: the guest sent more than its credit. */
bool output_put(struct output *output, const unsigned char *data, size_t length);

/* True while something waits to be written. */
bool output_pending(const struct output *output);

/* The guest sends no more: an incomplete character is written as it is. */
void output_finish(struct output *output);

/* Writes as much as possible without blocking. After the reader has closed (EPIPE), output is
 * discarded and its credit returned; that is no error of the sandbox. */
void output_flush(struct output *output);

/* The credit to return now: 0 while it is too little for an event. */
size_t output_take_credit(struct output *output);

#endif
