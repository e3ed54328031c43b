/* The guest's output on its way to our standard output and standard error.
 *
 * One buffer per stream, as large as the credit that the guest has: it can always take what the guest may
 * send, and credit goes back only for what was really written. So nothing is lost, a slow reader slows
 * the guest's writer, and neither stream waits for the other. More than the credit is a guest that
 * breaks the protocol.
 *
 * What a guest says on `stdout` or `stderr` is text of somebody's, and on a terminal it is made harmless
 * (common/text/escape.h): only a command that was given the terminal (`tty`) may steer it. A character that was cut
 * in two by the pieces in which it came is put together again.
 *
 * Standard output is shared with whoever started us, so O_NONBLOCK must not be set on it: pipes and
 * terminals are opened anew through /proc/self/fd where that works, sockets take MSG_DONTWAIT, and for
 * everything else a write may block for a moment.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_OUTPUT_H
#define QEMU_HARNESS_LAUNCHER_GUEST_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/os/failure.h"
#include "common/wire/protocol.h"

#define OUTPUT_SIZE CONTROL_CREDIT_INITIAL
#define OUTPUT_ESCAPED_PIECE 1024 /* bytes of the guest's that are made harmless at once */
#define OUTPUT_CHARACTER_MAX 4    /* UTF-8 */

struct output {
    int fd;        /* ours, or -1 once the reader is gone */
    bool socket;   /* written with send(2) */
    bool terminal; /* what was opened is one */
    bool escape;   /* what is written is made harmless */
    bool last;     /* nothing comes any more */
    size_t start, length;
    size_t owed;                    /* credit not yet given back */
    unsigned char *bytes;           /* a ring of OUTPUT_SIZE */
    char cut[OUTPUT_CHARACTER_MAX]; /* the begin of a character that the next piece ends */
    size_t cut_length;
    size_t shown_start, shown_end; /* of `shown`: what is still to be written */
    char shown[4 * (OUTPUT_ESCAPED_PIECE + OUTPUT_CHARACTER_MAX) + 1];
};

/* For standard output (1) or standard error (2). 0 or a negative errno. */
int output_open(struct output *output, int standard, struct failure *why);
void output_close(struct output *output);

/* False when it does not fit: the guest sent more than its credit. */
bool output_put(struct output *output, const unsigned char *data, size_t length);

/* True while something waits to be written. */
bool output_pending(const struct output *output);

/* Nothing comes any more: what is left is written as it is. */
void output_finish(struct output *output);

/* Writes what goes without blocking. A reader that has left (EPIPE) is not an error of the sandbox: what
 * comes is then thrown away, and the credit given back. */
void output_flush(struct output *output);

/* Credit to give back now: 0 until it is worth an event. */
size_t output_take_credit(struct output *output);

#endif
