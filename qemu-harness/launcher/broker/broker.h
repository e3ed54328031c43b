/* The broker of this sandbox: started with the options of the command line, and ended with us.
 *
 * Its standard input is a pipe whose other end only this program holds, so the broker ends when
 * this program does, in any way. Its first line on standard output says that it listens, and
 * holds the token, which goes to codev-init only. A broker that ends before that line fails the
 * start, with its last message as the reason.
 */
#ifndef QEMU_HARNESS_LAUNCHER_BROKER_BROKER_H
#define QEMU_HARNESS_LAUNCHER_BROKER_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json/json.h"
#include "common/os/secret.h"
#include "common/text/line_buffer.h"
#include "common/wire/protocol.h"
#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/host/processes.h"
#include "qemu-harness/launcher/machine/guest_link.h"

#define BROKER_LINE_MAX                                                                            \
    (EGRESS_MAX * (RULE_NAME_MAX + 3) +                                                            \
     64 * 1024) /* all names, quoted; a longer line is discarded */
#define BROKER_TOKENS_MAX (EGRESS_MAX + 64)
#define BROKER_READY_MS 30000
#define BROKER_PIN_LENGTH (7 + SECRET_HEX_LENGTH) /* sha256:HEX */

struct broker {
    bool wanted;     /* there is a gateway login */
    bool rules_only; /* there is no login: it only checks the rules, and ends */
    int life;        /* the pipe to its standard input; closing it ends the broker */
    int out, err;
    uint32_t guest_port; /* what the guest dials */
    char token[SECRET_HEX_LENGTH + 1];
    char pin[BROKER_PIN_LENGTH + 1]; /* of its key, where the guest checks it; else "" */
    char egress[BROKER_LINE_MAX];    /* a JSON array of names */
    struct line_buffer out_lines, err_lines;
    char out_bytes[BROKER_LINE_MAX], err_bytes[BROKER_LINE_MAX];
    struct json_token tokens[BROKER_TOKENS_MAX];
    char last_message[FAILURE_TEXT_MAX]; /* its last line on standard error, escaped */
};

/* Starts the broker when a gateway is configured. Without a gateway, but with rules, it is
 * started to check these: a malformed file fails the start, logged in or not. 0 or a negative
 * errno. */
int broker_start(struct broker *broker, const struct options *options,
                 const struct guest_link *link, struct process_table *processes,
                 struct failure *why);

/* Waits for the ready line, or for the end of the check. 0; -EINTR when `signals` becomes
 * readable; or a negative errno with the broker's own reason. */
int broker_wait_ready(struct broker *broker, const struct guest_link *link,
                      struct process_table *processes, int signals, struct failure *why);

/* Reads one of the two outputs; false at its end. */
bool broker_read(struct broker *broker, int *fd, struct line_buffer *lines);

enum broker_line {
    BROKER_NOTHING, /* there is no whole line */
    BROKER_EVENT,   /* JSON: an event of the broker, or a line of its request log */
    BROKER_MESSAGE, /* text for a person */
};

/* Takes the next line of one of the two outputs. EVENT: parsed into *line, valid until the next
 * read; MESSAGE: escaped into `message`. */
enum broker_line broker_next_line(struct broker *broker, struct line_buffer *lines,
                                  struct json *line, char *message, size_t size);

void broker_close(struct broker *broker);

#endif
