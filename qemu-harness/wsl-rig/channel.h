/* Runs programs at the host's request, one at a time on each port of the virtio-serial device.
 *
 * A port is a Unix socket on the host; a client that connects owns it until it closes. Both
 * directions carry frames, `type, length (32 bits, little endian), bytes`:
 *
 *     host:   S  start: words, each with a final NUL: `exec` DISTRIBUTION USER ARGV...,
 *                or `connect` PORT
 *             I  standard input
 *             E  the end of standard input
 *     guest:  R  the port is idle: the first frame after the host has connected
 *             O  standard output
 *             D  standard error
 *             X  the end: an exit status in decimal, 128+N for signal N
 *
 * `connect` connects the port to 127.0.0.1:PORT of the shared network, as WSL's localhost
 * forwarding does with NAT. The states of a port:
 *
 *     CLOSED   no client on the host is connected
 *     OPEN     a client is connected, R was sent, S is expected
 *     RUNNING  a process runs; input is read from the port only while the process's pipe takes it
 *     DYING    the client has left: the process's input has ended and its output is dropped; the
 *              port is free again when the process ends
 *
 * A process continues after its client has left, as on WSL; it gets the end of its input. Buffers
 * have a fixed size; a slow reader on one side stops the sender on the other.
 */
#ifndef QEMU_HARNESS_WSL_RIG_CHANNEL_H
#define QEMU_HARNESS_WSL_RIG_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CHANNEL_PORTS_MAX 64
#define CHANNEL_FRAME_MAX 32768
#define CHANNEL_HEAD 5
#define CHANNEL_WORDS_MAX 256

enum channel_state {
    CHANNEL_CLOSED,
    CHANNEL_OPEN,
    CHANNEL_RUNNING,
    CHANNEL_DYING,
    CHANNEL_STATE_COUNT
};

struct channel_port {
    enum channel_state state;
    int fd;
    pid_t pid;        /* 0: a connection to a port, or none */
    int in, out, err; /* our ends: pipes, or for `connect` one socket twice (in, out); -1: closed */
    bool in_ended;    /* the host has sent E */
    bool exited;
    int status;
    /* from the host: the head and bytes of a frame, until it is complete and handled */
    unsigned char frame[CHANNEL_HEAD + CHANNEL_FRAME_MAX];
    size_t have, used;
    /* to the host: complete frames */
    unsigned char back[2 * (CHANNEL_HEAD + CHANNEL_FRAME_MAX)];
    size_t back_start, back_end;
};

/* Starts what an S frame requests. Returns false when the frame is invalid; a process that cannot
 * start reports that itself. */
bool execution_start(struct channel_port *port, char *words, size_t length);

/* Closes the descriptors that are still open. */
void execution_forget(struct channel_port *port);

#endif
