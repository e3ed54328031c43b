/* The control channel: one byte stream to the host, one JSON object per line (design, section 3).
 *
 * Two outgoing queues of fixed size. Events go before output, however much output waits: only a
 * line that is already partly written is finished first. Output has one slot; whoever produces
 * output waits until it is free, so a slow host slows its producers and nothing grows.
 */
#ifndef INIT_HOST_CONTROL_H
#define INIT_HOST_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/json/json_writer.h"
#include "common/os/failure.h"
#include "common/text/encoding.h"
#include "common/text/line_buffer.h"
#include "common/wire/protocol.h"

#define CONTROL_EVENTS_SIZE (64 * 1024)
#define CONTROL_EVENTS_RESERVE (32 * 1024) /* events that may be lost leave this to the others */
#define CONTROL_OUTPUT_SIZE (BASE64_LENGTH(CONTROL_DATA_MAX) + 64)
#define CONTROL_WRITE_MAX (32 * 1024) /* one write(2): larger packets fail on some VMMs */
#define CONTROL_READ_MAX                                                                           \
    (64 * 1024) /* one read(2): what is resident of the line buffer as a rule */

/* How a descriptor of the channel is used without waiting for it (control_stdio.c). */
enum control_io {
    CONTROL_IO_PLAIN,  /* it is non-blocking */
    CONTROL_IO_SOCKET, /* shared with others: MSG_DONTWAIT */
    CONTROL_IO_WAITED  /* shared with others: poll(2) first, then a small piece */
};

enum control_queue { CONTROL_IDLE, CONTROL_EVENTS, CONTROL_OUTPUT, CONTROL_QUEUE_COUNT };

struct control {
    int fd;     /* -1 before the connection and after its end */
    int out_fd; /* where what is written goes, when it is not `fd`: -1 then */
    enum control_io in_how, out_how;
    bool ended;                 /* nothing can come any more; `out_fd` may still be there */
    enum control_queue writing; /* the queue whose front line is partly written */
    size_t events_start, events_end;
    size_t output_start, output_end;
    struct line_buffer in;
    size_t in_high; /* most bytes that lay in the line buffer since its pages were given back */
    struct json_writer writer;
    bool writer_may_lose;
    char events[CONTROL_EVENTS_SIZE];
    char output[CONTROL_OUTPUT_SIZE];
};

enum control_importance { CONTROL_MUST, CONTROL_MAY_LOSE };

/* Prepares the buffers; before it the structure is all zero. 0 or a negative errno. */
int control_open(struct control *control);
void control_close(struct control *control); /* the descriptor and the buffers; for tests */

/* Takes over a connected non-blocking stream. What was queued before is sent over it. */
void control_attach(struct control *control, int fd);

/* The same with a descriptor for each direction. The end of the first leaves the second open: what
 * is still to be said can be heard. */
void control_attach_pair(struct control *control, int in, enum control_io in_how, int out,
                         enum control_io out_how);

/* The same with standard input and output, whose file descriptions stay as they are. A terminal
 * becomes raw until control_restore_terminal. */
int control_attach_stdio(struct control *control, struct failure *why);
void control_restore_terminal(void);

/* read(2) and write(2) that never wait, for control.c: as these, with EAGAIN. */
ssize_t control_read(int fd, enum control_io how, void *out, size_t length);
ssize_t control_write(int fd, enum control_io how, const void *data, size_t length);

/* Where events go: to be polled while control_wants_write; -1 when nobody can be told anything. */
int control_write_fd(const struct control *control);

/* Starts an event {"event":NAME, and returns the writer for its further members; ended by
 * control_event_end, which queues it: 0, or -ENOBUFS when the queue has no room (the event is
 * lost). */
struct json_writer *control_event_begin(struct control *control, const char *name,
                                        enum control_importance importance);
int control_event_end(struct control *control);

/* True while a piece of output can be taken. */
bool control_output_free(const struct control *control);

/* Queues {"event":"output",...}: at most CONTROL_DATA_MAX bytes, and only while the slot is
 * free. */
void control_output_put(struct control *control, const char *stream, const void *data,
                        size_t length);

/* Forgets output of which the host has seen no byte yet; true when there was some. */
bool control_output_forget(struct control *control);

bool control_wants_write(const struct control *control);

/* Writes what the descriptor takes. 0, or a negative errno when the channel is at its end. */
int control_flush(struct control *control);

/* Reads once. 0, or a negative errno when the channel is at its end (-EPIPE: in good order). */
int control_receive(struct control *control);

/* The next whole line: 1, 0 when there is none, -EMSGSIZE when it is longer than CONTROL_LINE_MAX:
 * then control_receive throws away what is there of it. Valid until the next call of
 * control_receive. */
int control_next_line(struct control *control, char **line, size_t *length);

/* Ends the channel from our side: nothing is sent or received any more, and nothing waits. */
void control_end(struct control *control);

/* Connects to the host at the port on the kernel command line, sends what is queued (hello and the
 * stages so far) and waits for the host's first bytes, with back-off while nobody answers there,
 * until `deadline` (CLOCK_MONOTONIC, nanoseconds). A connection that ends before it said anything
 * counts as none. */
int control_dial(struct control *control, int64_t deadline, struct failure *why);

/* The port of codev.control=vsock:PORT in a kernel command line; CONTROL_PORT_DEFAULT without one,
 * -EINVAL for one that is malformed. Exposed for tests. */
int control_port_find(const char *command_line, uint32_t *port);

/* Writes one line where a person at the machine's console may see it: for failures that no host can
 * be told of. After console_is_stderr only to standard error: in WSL the console is not ours. */
void console_write(const char *text);
void console_is_stderr(void);

#endif
