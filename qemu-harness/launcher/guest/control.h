/* The host's end of the control channel (doc/design.md, "Control channel").
 *
 * One connection per boot is served: the first that sends a whole line. After one that ends
 * without a line, the next is accepted. Lines from the guest are hostile: each must be strict
 * JSON, and an event of a known name must have the known form; otherwise the sandbox ends. An
 * event of an unknown name is passed on and otherwise ignored, so that an older host can serve a
 * newer guest.
 *
 * Commands are queued in a buffer of fixed size. Input is limited to the credit that the guest
 * gave, so the queue is bounded: call control_input_room before sending input.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_CONTROL_H
#define QEMU_HARNESS_LAUNCHER_GUEST_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json/json.h"
#include "common/os/failure.h"
#include "common/text/line_buffer.h"
#include "common/wire/protocol.h"

#define CONTROL_OUT_SIZE (2 * 1024 * 1024) /* the boot configuration and full input credit fit */
#define CONTROL_NAME_MAX 64
#define CONTROL_TIME_MAX 40   /* of `unix_ns` with its value, in the boot configuration */
#define CONTROL_TEXT_MAX 4096 /* of a message; longer ones are cut */

enum control_state {
    CONTROL_LISTENING, /* nobody is connected */
    CONTROL_SILENT, /* connected, no line yet: the end of the connection leads back to LISTENING */
    CONTROL_OPEN,   /* hello was read */
    CONTROL_ENDED,  /* the connection is closed for good */
    CONTROL_STATE_COUNT
};

enum control_event_kind {
    EVENT_HELLO,
    EVENT_STAGE,
    EVENT_READY,
    EVENT_FAILED,
    EVENT_WARNING,
    EVENT_FIREWALL,
    EVENT_OUTPUT,
    EVENT_DROPPED,
    EVENT_CREDIT,
    EVENT_TIME,
    EVENT_EXIT,
    EVENT_UNKNOWN,
    EVENT_KIND_COUNT
};

enum control_stream { STREAM_STDOUT, STREAM_STDERR, STREAM_TTY, STREAM_COUNT };

extern const char *const control_event_names[EVENT_KIND_COUNT];
extern const char *const control_stream_names[STREAM_COUNT];

/* One event. The kinds behind a member say when it counts. */
struct control_event {
    enum control_event_kind kind;
    /* STAGE, FAILED: stage; FIREWALL: state; READY: the way in; UNKNOWN: the event */
    char name[CONTROL_NAME_MAX];
    char text[CONTROL_TEXT_MAX]; /* FAILED, WARNING: hostile, to be escaped */
    double ms;                   /* STAGE, READY (boot_ms) */
    int64_t number; /* HELLO: protocol; CREDIT: bytes; DROPPED: lines; EXIT: code or signal;
                     * TIME: what the answer repeats */
    bool by_signal; /* EXIT */
    enum control_stream stream; /* OUTPUT */
    const unsigned char *data;  /* OUTPUT, valid until the next event */
    size_t length;
    const char *line; /* the event as it came, without newline; hostile, but strict JSON */
    size_t line_length;
};

struct control {
    enum control_state state;
    int listener, fd;
    struct line_buffer in;
    struct json_token *tokens; /* CONTROL_TOKENS_MAX */
    unsigned char *data;       /* CONTROL_DATA_MAX, and room for the base64 before */
    char *out;                 /* CONTROL_OUT_SIZE; [out_start, out_end) waits to be written */
    size_t out_start, out_end;
    int64_t input_credit; /* bytes of input that the guest still accepts */
    bool overflow;        /* sticky: a command did not fit, since the guest does not read */
};

/* Takes ownership of the listening descriptor. 0 or -ENOMEM. */
int control_init(struct control *control, int listener, struct failure *why);
void control_destroy(struct control *control);

/* Takes ownership of an accepted connection (non-blocking). */
void control_attach(struct control *control, int fd);

/* Reads once. False when the connection has ended. */
bool control_receive(struct control *control);

/* Takes the next event: 1; 0 when there is none; a negative errno when the guest violates the
 * protocol. */
int control_next(struct control *control, struct control_event *event, struct failure *why);

bool control_wants_write(const struct control *control);
bool control_flush(struct control *control); /* false when the connection has ended */

/* Sends the boot configuration, an object that is not empty. With `add_time` its first member
 * becomes `unix_ns`, the time of this call (less than CONTROL_TIME_MAX bytes). */
void control_send_config(struct control *control, const char *json, size_t length, bool add_time);

/* Commands. */
void control_send_time(struct control *control, int64_t number); /* answers the event `time` */
void control_send_input(struct control *control, const void *data, size_t length);
void control_send_input_end(struct control *control);
void control_send_credit(struct control *control, enum control_stream stream, size_t bytes);
void control_send_resize(struct control *control, unsigned rows, unsigned columns);
void control_send_shutdown(struct control *control, int64_t grace_ms);
void control_send_ack(struct control *control);

/* The number of bytes of input that can be sent now: the guest's credit, at most
 * CONTROL_DATA_MAX. */
size_t control_input_room(const struct control *control);

#endif
