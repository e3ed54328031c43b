/* The server's descriptors 0 to 2: input from the host and output to it.
 *
 * In the modes `pipe` and `tty` nothing is lost: init reads only as much as the host gave credit
 * for and the output slot of the control channel can hold, so the writer waits; and the host sends
 * only what init gave it credit for, which the input ring can hold. In mode `log` init always
 * reads, so the writer never waits, and whole lines are dropped and counted when the host is
 * slower.
 */
#ifndef INIT_SERVER_SERVER_IO_H
#define INIT_SERVER_SERVER_IO_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "init/config/boot_config.h"
#include "init/host/control.h"
#include "init/server/log_buffer.h"

enum output_stream { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_TTY, OUTPUT_STREAM_COUNT };
extern const char *const output_stream_names[OUTPUT_STREAM_COUNT];

/* Places in the caller's poll table: the outputs in the order of their enum, then the input. */
#define SERVER_IO_INPUT OUTPUT_STREAM_COUNT
#define SERVER_IO_POLLS (OUTPUT_STREAM_COUNT + 1)

#define INPUT_CREDIT_STEP                                                                          \
    (CONTROL_CREDIT_INITIAL / 4)      /* credit is given back in pieces of this size */
#define OUTPUT_CREDIT_MAX (1ll << 40) /* the most that is counted */

struct server_input {
    int fd;             /* our end; -1: closed, further input is dropped */
    bool end_wanted;    /* the host sent `eof`: close once the ring is empty */
    size_t start, used; /* of the ring */
    int64_t credit;     /* bytes that the host may still send */
    int64_t spent;      /* bytes written to the server, not yet given back as credit */
    char ring[CONTROL_CREDIT_INITIAL];
};

struct server_output {
    int fd;         /* our end, or -1: ended */
    int64_t credit; /* `pipe` and `tty`: bytes that may still be sent to the host */
};

struct server_io {
    enum server_stdio mode;
    struct server_input input;
    struct server_output outputs[OUTPUT_STREAM_COUNT];
    struct log_buffer logs[2]; /* of stdout and stderr, mode `log` */
    enum output_stream turn;   /* the stream that is read first next time */
    int64_t lines_sent;        /* mode `log`: lines that were put into the slot last */
};

/* Our ends, non-blocking: `in` and `out` are two descriptors of one pty master in mode `tty`, and
 * `error` is -1 there. Takes them over. */
void server_io_open(struct server_io *io, enum server_stdio mode, int in, int out, int error);
void server_io_close(struct server_io *io);

/* How many bytes of this output may be read now; decides the poll interest. Pure. */
size_t server_io_readable(const struct server_io *io, enum output_stream stream, bool slot_free);

/* Fills SERVER_IO_POLLS entries; those without interest get fd -1. */
void server_io_prepare(const struct server_io *io, const struct control *control,
                       struct pollfd *polls);

/* Does the I/O that the entries of a poll(2) allow, and moves output to the control channel. */
void server_io_run(struct server_io *io, struct control *control, const struct pollfd *polls);

/* Bytes from the host: 0, or -EDQUOT when they exceed its credit, and then all are dropped. */
int server_io_input(struct server_io *io, const char *bytes, size_t length);
void server_io_input_end(struct server_io *io);

/* More credit for an output; -EINVAL for a stream that this mode does not have. */
int server_io_credit(struct server_io *io, const char *stream, int64_t bytes);

/* The terminal's size; -ENOTTY without one. */
int server_io_resize(const struct server_io *io, unsigned short rows, unsigned short columns);

/* True when every output has ended and all of it was passed to the control channel. Closes outputs
 * that have ended while the host gives no credit, which are not read and so would not be
 * noticed. */
bool server_io_drained(struct server_io *io);

/* The time for draining is over: output that was not sent yet is dropped, and in mode `log`
 * counted. */
void server_io_give_up(struct server_io *io, struct control *control);

/* True when output waits only for the host. */
bool server_io_waits_for_host(const struct server_io *io, const struct control *control);

#endif
