/* --events FILE: what happens, as JSON lines for an app.
 *
 *     the guest's control events as they came, but for `output` (that is on standard output);
 *     {"event":"way_in","path":"...","tcp":"127.0.0.1:PORT"}    where the way in is
 *     {"event":"broker_ready","egress":["gateway",...]}         it listens
 *     {"event":"broker","line":{...}}                           what the broker announces or logs
 *     {"event":"broker_exit","reason":"exit status 0"}          it ended while the sandbox ran
 *     {"event":"notice","text":"..."}                           what is told on standard error
 *
 * Those behind the first kind are the host's own: a guest that says one of them breaks the protocol, or whoever
 * reads the file would take its word for where the way in is.
 *
 * A guest cannot fill the disk with it: beyond EVENTS_GUEST_BYTES_MAX bytes that the guest caused (its own
 * lines and the broker's log) they are left out, and one notice says so. The broker's token is in none.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_EVENTS_H
#define QEMU_HARNESS_LAUNCHER_GUEST_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/json/json.h"
#include "common/os/failure.h"

#define EVENTS_GUEST_BYTES_MAX (16 * 1024 * 1024)

struct events {
    int fd; /* -1: nobody asked */
    size_t guest_bytes;
};

int events_open(struct events *events, const char *file, struct failure *why);
void events_close(struct events *events);

/* True for a name that only the host may say. */
bool events_is_own(const char *name);

/* One line that is JSON already. */
void events_guest_line(struct events *events, const char *line, size_t length);
void events_broker_line(struct events *events, const struct json *line);
void events_way_in(struct events *events, const char *path, unsigned tcp_port);
void events_broker_ready(struct events *events, const char *egress_json);
void events_text(struct events *events, const char *event, const char *name, const char *text);

#endif
