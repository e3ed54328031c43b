/* Writes the events file. A line that cannot be written (full disk, closed pipe) ends the file,
 * not the sandbox. */
#include "qemu-harness/launcher/guest/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "common/json/json_writer.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/launcher/broker/broker.h"

#define LINE_MAX_BYTES (BROKER_LINE_MAX + 1024) /* a line of the broker, in an object of ours */

static const char *const own_names[] = {"way_in", "broker_ready", "broker", "broker_exit",
                                        "notice"};

bool events_is_own(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(own_names); i++)
        if (strcmp(own_names[i], name) == 0)
            return true;
    return false;
}

int events_open(struct events *events, const char *file, struct failure *why)
{
    *events = (struct events){.fd = -1};
    if (!file)
        return 0;
    events->fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
    return events->fd < 0 ? failure_errno(why, errno, "--events %s", file) : 0;
}

void events_close(struct events *events)
{
    fd_close(&events->fd);
}

static void events_write(struct events *events, const char *line, size_t length)
{
    if (events->fd >= 0 && io_write_full(events->fd, line, length))
        fd_close(&events->fd);
}

static void events_finish(struct events *events, struct json_writer *writer)
{
    json_write_object_end(writer);
    int length = json_writer_finish(writer, true);
    if (length > 0)
        events_write(events, writer->buffer, (size_t)length);
}

static void events_start(struct json_writer *writer, char *buffer, size_t size, const char *event)
{
    json_writer_start(writer, buffer, size);
    json_write_object_begin(writer);
    json_member_string(writer, "event", event);
}

/* True while lines that the guest causes are still written. */
static bool take_guest_bytes(struct events *events, size_t length)
{
    if (events->fd < 0 || events->guest_bytes > EVENTS_GUEST_BYTES_MAX)
        return false;
    events->guest_bytes += length + 1;
    if (events->guest_bytes <= EVENTS_GUEST_BYTES_MAX)
        return true;
    events_text(events, "notice", "text",
                "too many events from the guest: further ones are omitted");
    return false;
}

void events_guest_line(struct events *events, const char *line, size_t length)
{
    if (!take_guest_bytes(events, length))
        return;
    events_write(events, line, length);
    events_write(events, "\n", 1);
}

void events_broker_line(struct events *events, const struct json *line)
{
    static char buffer[LINE_MAX_BYTES];
    struct json_writer writer;
    if (!take_guest_bytes(events, line->length))
        return;
    events_start(&writer, buffer, sizeof(buffer), "broker");
    json_write_name(&writer, "line");
    json_write_object_begin(&writer);
    for (uint32_t at = json_first(line, 0); at; at = json_next(line, 0, at)) {
        const struct json_token *value = &line->tokens[at + 1];
        char name[64];
        if (json_string(line, at, name, sizeof(name)) < 0 || strcmp(name, "token") == 0)
            continue;
        json_write_name(&writer, name);
        uint32_t quotes = value->type == JSON_STRING;
        json_write_raw(&writer, line->text + value->start - quotes,
                       value->end - value->start + 2 * quotes);
    }
    json_write_object_end(&writer);
    events_finish(events, &writer);
}

void events_broker_ready(struct events *events, const char *egress_json)
{
    static char buffer[LINE_MAX_BYTES];
    struct json_writer writer;
    events_start(&writer, buffer, sizeof(buffer), "broker_ready");
    json_write_name(&writer, "egress");
    json_write_raw(&writer, egress_json, strlen(egress_json));
    events_finish(events, &writer);
}

void events_way_in(struct events *events, const char *path, unsigned tcp_port)
{
    char buffer[1024], address[32];
    struct json_writer writer;
    events_start(&writer, buffer, sizeof(buffer), "way_in");
    json_member_string(&writer, "path", path);
    if (tcp_port) {
        snprintf(address, sizeof(address), "127.0.0.1:%u", tcp_port);
        json_member_string(&writer, "tcp", address);
    }
    events_finish(events, &writer);
}

void events_text(struct events *events, const char *event, const char *name, const char *text)
{
    char buffer[8192];
    struct json_writer writer;
    events_start(&writer, buffer, sizeof(buffer), event);
    json_member_string(&writer, name, text);
    events_finish(events, &writer);
}
