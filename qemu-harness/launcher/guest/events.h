/* --events FILE: the events of guest, broker and launcher as JSON lines, for an app.
 *
 *     the guest's control events unchanged, but for `output` (which is on standard output)
 *     {"event":"way_in","path":"...","tcp":"127.0.0.1:PORT"}    where the way in is
 *     {"event":"broker_ready","egress":["gateway",...]}         the broker listens
 *     {"event":"broker","line":{...}}                           a line of the broker
 *     {"event":"broker_exit","reason":"exit status 0"}          it ended while the sandbox ran
 *     {"event":"notice","text":"..."}                           a line on standard error
 *
 * Only the host may send the events after the first line: an app trusts them, for example for the
 * path of the way in. A guest that sends one of them violates the protocol.
 *
 * A guest cannot fill the disk: after EVENTS_GUEST_BYTES_MAX bytes that the guest caused (its own
 * lines and the broker's log) such lines are omitted, and one notice says so. No line holds the
 * broker's token.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_EVENTS_H
#define QEMU_HARNESS_LAUNCHER_GUEST_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/json/json.h"
#include "common/os/failure.h"

#define EVENTS_GUEST_BYTES_MAX (16 * 1024 * 1024)

struct events {
    int fd; /* -1: without --events */
    size_t guest_bytes;
};

int events_open(struct events *events, const char *file, struct failure *why);
void events_close(struct events *events);

/* True for the name of an event that only the host may send. */
bool events_is_own(const char *name);

/* Writes one line, which is JSON already. */
void events_guest_line(struct events *events, const char *line, size_t length);
void events_broker_line(struct events *events, const struct json *line);
void events_way_in(struct events *events, const char *path, unsigned tcp_port);
void events_broker_ready(struct events *events, const char *egress_json);
void events_text(struct events *events, const char *event, const char *name, const char *text);

#endif
