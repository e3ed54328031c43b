/* Executions asked for by the host, one on each port of the virtio-serial device.
 *
 * A port is a Unix socket on the host; whoever connects owns it until it closes. Both directions
 * are frames, `type, length (32 bits, little endian), bytes`:
 *
 *     host:   S  start: words that end with NUL each: `exec` DISTRIBUTION USER ARGV..., or
 * `connect` PORT I  standard input      E  its end guest:  R  the port is there and idle: the first
 * frame that a host sees O  standard output     D  diagnostics (standard error) X  the end: an exit
 * status in decimal, 128+N for signal N
 *
 * `connect` joins the port to 127.0.0.1:PORT of the shared network, as WSL's localhost forwarding
 * does with NAT.
 *
 *     CLOSED   nobody on the host is connected
 *     OPEN     connected, R was sent; S is awaited
 *     RUNNING  a process runs; input is read from the port only while the pipe to it takes it
 *     DYING    the host has left: its input has ended, its output goes nowhere; only its end is
 * awaited
 *
 * A process outlives a host that has left, as on WSL; it sees the end of its input. Fixed buffers;
 * a slow reader on either side stops the other. */
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
    pid_t pid; /* 0: a connection to a port, or none */
    int in, out,
        err;       /* our ends: pipes, or for `connect` one socket twice (in and out); -1: ended */
    bool in_ended; /* the host has said E */
    bool exited;
    int status;
    /* from the host: a frame's head and bytes, until they are whole and used */
    unsigned char frame[CHANNEL_HEAD + CHANNEL_FRAME_MAX];
    size_t have, used;
    /* to the host: whole frames */
    unsigned char back[2 * (CHANNEL_HEAD + CHANNEL_FRAME_MAX)];
    size_t back_start, back_end;
};

/* Starts what an S frame asks for. False when it cannot be read; a process that cannot start says
 * so itself. */
bool execution_start(struct channel_port *port, char *words, size_t length);

/* Closes what is left of it. */
void execution_forget(struct channel_port *port);

#endif
