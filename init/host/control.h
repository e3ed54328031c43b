/* The control channel: one byte stream to the host, one JSON object per line
 * (doc/control-channel.md).
 *
 * Two outgoing queues of fixed size. Events are sent before output, however much output waits; only
 * a line that is partly written is finished first. Output has one slot, and its producer waits
 * until the slot is free: a slow host slows the producer down, and nothing grows.
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

/* How a descriptor of the channel is used without blocking. */
enum control_io {
    CONTROL_IO_PLAIN,  /* it is non-blocking */
    CONTROL_IO_SOCKET, /* shared with other programs: MSG_DONTWAIT */
    CONTROL_IO_WAITED  /* shared with other programs: poll(2) first, then a small piece */
};

enum control_queue { CONTROL_IDLE, CONTROL_EVENTS, CONTROL_OUTPUT, CONTROL_QUEUE_COUNT };

struct control {
    int fd;     /* -1 before the connection and after its end */
    int out_fd; /* for writing, when that is another descriptor; else -1 */
    enum control_io in_how, out_how;
    bool ended;                 /* nothing more is received; `out_fd` may still be open */
    enum control_queue writing; /* the queue whose front line is partly written */
    size_t events_start, events_end;
    size_t output_start, output_end;
    struct line_buffer in;
    size_t in_high; /* most bytes in the line buffer since its pages were given back */
    struct json_writer writer;
    bool writer_may_lose;
    char events[CONTROL_EVENTS_SIZE];
    char output[CONTROL_OUTPUT_SIZE];
};

enum control_importance { CONTROL_MUST, CONTROL_MAY_LOSE };

/* Prepares the buffers; before it the structure is all zero. 0 or a negative errno. */
int control_open(struct control *control);

/* Takes over a connected non-blocking stream. Queued lines are sent over it. */
void control_attach(struct control *control, int fd);

/* The same with a descriptor for each direction. After the end of the first, events can still be
 * sent over the second. */
void control_attach_pair(struct control *control, int in, enum control_io in_how, int out,
                         enum control_io out_how);

/* The descriptor to poll while control_wants_write; -1 when nothing can be sent. */
int control_write_fd(const struct control *control);

/* Starts an event {"event":NAME, and returns the writer for its further members; ended by
 * control_event_end, which queues it: 0, or -ENOBUFS when the queue has no room (the event is
 * lost). */
struct json_writer *control_event_begin(struct control *control, const char *name,
                                        enum control_importance importance);
int control_event_end(struct control *control);

/* True while the output slot is free. */
bool control_output_free(const struct control *control);

/* Queues {"event":"output",...}: at most CONTROL_DATA_MAX bytes, and only while the slot is
 * free. */
void control_output_put(struct control *control, const char *stream, const void *data,
                        size_t length);

/* Drops output of which no byte was sent yet; true when there was some. */
bool control_output_forget(struct control *control);

bool control_wants_write(const struct control *control);

/* Ends a line that another process has left partly written: an empty line is no event. */
void control_break_line(struct control *control);

/* Writes what the descriptor takes. 0, or a negative errno when the channel has ended. */
int control_flush(struct control *control);

/* Reads once. 0, or a negative errno when the channel has ended (-EPIPE: the host closed it). */
int control_receive(struct control *control);

/* The next whole line: 1; 0 when there is none; -EMSGSIZE when it is longer than CONTROL_LINE_MAX,
 * and then control_receive drops what was received of it. The line is valid until the next call of
 * control_receive. */
int control_next_line(struct control *control, char **line, size_t *length);

/* Closes the channel from our side and drops what is queued. */
void control_end(struct control *control);

#endif
