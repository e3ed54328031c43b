/* The broker of this sandbox: started with what the command line says, watched, ended with us.
 *
 * Its standard input is a pipe that only we hold: it ends when we do, whatever way. Its first line on
 * standard output says that it listens, and carries the token, which we keep and show nobody but the
 * guest's init. A broker that ends before is a start that failed, with its own last message as the reason.
 */
#ifndef QEMU_HARNESS_LAUNCHER_RUN_BROKER_H
#define QEMU_HARNESS_LAUNCHER_RUN_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json/json.h"
#include "common/os/secret.h"
#include "common/text/line_buffer.h"
#include "common/wire/protocol.h"
#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/host/processes.h"
#include "qemu-harness/launcher/machine/vsock.h"

#define BROKER_LINE_MAX                                                                            \
    (EGRESS_MAX * (RULE_NAME_MAX + 3) + 64 * 1024) /* all names, quoted; longer lines are a fault */
#define BROKER_TOKENS_MAX (EGRESS_MAX + 64)
#define BROKER_READY_MS 30000
#define BROKER_PIN_LENGTH (7 + SECRET_HEX_LENGTH) /* sha256:HEX */

struct broker {
    bool wanted;     /* there is a gateway login */
    bool rules_only; /* there is none: it only checks the rules, and ends */
    int life;        /* the pipe's end whose closing ends it */
    int out, err;
    uint32_t guest_port; /* what the guest dials: at CID 2, or the TCP port on this host */
    char token[SECRET_HEX_LENGTH + 1];
    char pin[BROKER_PIN_LENGTH + 1]; /* of its key, where the guest comes over TCP; else "" */
    char egress[BROKER_LINE_MAX];    /* a JSON array of names */
    struct line_buffer out_lines, err_lines;
    char out_bytes[BROKER_LINE_MAX], err_bytes[BROKER_LINE_MAX];
    struct json_token tokens[BROKER_TOKENS_MAX];
    char last_message[FAILURE_TEXT_MAX]; /* its last line on standard error, escaped */
};

/* Starts it when a gateway is configured. Without one, but with rules, it is started to check these: a file that is
 * malformed fails the start whoever is logged in. 0 or a negative errno. */
int broker_start(struct broker *broker, const struct options *options, const struct vsock *vsock,
                 struct process_table *processes, struct failure *why);

/* Waits for the ready line, or for the end of the check. 0; -EINTR when `signals` becomes readable; or a negative errno with the
 * broker's own reason. */
int broker_wait_ready(struct broker *broker, const struct vsock *vsock,
                      struct process_table *processes, int signals, struct failure *why);

/* Reads one of the two outputs; false at its end. */
bool broker_read(struct broker *broker, int *fd, struct line_buffer *lines);

enum broker_line {
    BROKER_NOTHING, /* no whole line is there */
    BROKER_EVENT,   /* JSON: what it announces, or a line of its request log */
    BROKER_MESSAGE, /* words for a person */
};

/* The next line of one of the two outputs. EVENT: parsed into *line, valid until the next read; MESSAGE:
 * escaped into `message`. */
enum broker_line broker_next_line(struct broker *broker, struct line_buffer *lines,
                                  struct json *line, char *message, size_t size);

void broker_close(struct broker *broker);

#endif
