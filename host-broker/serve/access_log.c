/* Builds the lines of the log and of events, and rotates the log. */
#include "host-broker/serve/access_log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/json/json_writer.h"
#include "common/os/cleanup.h"
#include "host-broker/base/event_loop.h"

#define RETRY_AFTER (200 * MILLISECONDS) /* for a full pipe */

const char *const request_end_names[REQUEST_END_COUNT] = {
    [REQUEST_COMPLETE] = "complete",
    [REQUEST_CANCELLED] = "cancelled",
    [REQUEST_UPSTREAM_ERROR] = "upstream-error",
    [REQUEST_REFUSED] = "refused",
};
static_assert(ARRAY_LENGTH(request_end_names) == REQUEST_END_COUNT, "a name for each");

void log_record_text(char *out, size_t size, struct slice text)
{
    size_t length = text.length < size ? text.length : size - 1;
    memcpy(out, text.bytes, length);
    out[length] = '\0';
}

static int open_file(struct access_log *log, bool *is_file, struct failure *why)
{
    CLEANUP_FD int fd =
        open(log->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return failure_errno(why, errno, "open the log %s", log->path);
    *is_file = S_ISREG(info.st_mode);
    log->file_size = *is_file ? (uint64_t)info.st_size : 0;
    return fd_steal(&fd);
}

int access_log_open(struct access_log *log, const char *path, struct failure *why)
{
    log->to_events = path && strcmp(path, "-") == 0;
    log->path = log->to_events ? NULL : path;
    line_sink_init(&log->events, STDOUT_FILENO);
    line_sink_init(&log->lines, log->to_events ? STDOUT_FILENO : STDERR_FILENO);
    return log->path ? access_log_reopen(log, why) : 0;
}

int access_log_reopen(struct access_log *log, struct failure *why)
{
    if (!log->path)
        return 0;
    bool is_file = false;
    int fd = open_file(log, &is_file, why);
    if (fd < 0)
        return fd; /* an open file stays in use */
    if (log->lines.fd > STDERR_FILENO)
        close(log->lines.fd);
    log->lines.fd = fd;
    log->lines.is_file = is_file;
    return 0;
}

static void rotate(struct access_log *log)
{
    char older[4096];
    int length = snprintf(older, sizeof(older), "%s.1", log->path);
    if (length < 0 || (size_t)length >= sizeof(older) || rename(log->path, older) < 0)
        log->file_size = 0; /* stays in use; the next try comes after as many bytes */
    else
        (void)access_log_reopen(log, NULL);
}

/* Date and time are formatted once a second, the milliseconds for each line. */
static void write_time(struct access_log *log, struct json_writer *writer)
{
    struct timespec now;
    struct tm parts;
    char text[sizeof(log->clock_text) + 8];
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != log->clock || log->clock_length == 0) {
        gmtime_r(&now.tv_sec, &parts);
        log->clock_length =
            strftime(log->clock_text, sizeof(log->clock_text), "%Y-%m-%dT%H:%M:%S.", &parts);
        log->clock = now.tv_sec;
    }
    unsigned ms = (unsigned)(now.tv_nsec / MILLISECONDS);
    memcpy(text, log->clock_text, log->clock_length);
    const char behind[] = {(char)('0' + ms / 100), (char)('0' + ms / 10 % 10),
                           (char)('0' + ms % 10), 'Z', '\0'};
    memcpy(text + log->clock_length, behind, sizeof(behind));
    json_member_string(writer, "time", text);
}

static void begin_line(struct access_log *log, struct json_writer *writer, char *line, size_t size)
{
    json_writer_start(writer, line, size);
    json_write_object_begin(writer);
    if (log->to_events)
        json_member_string(writer, "event", "request");
    write_time(log, writer);
}

static void end_line(struct line_sink *sink, struct json_writer *writer)
{
    json_write_object_end(writer);
    int length = json_writer_finish(writer, true);
    if (length > 0)
        line_sink_add(sink, writer->buffer, (size_t)length);
}

static struct line_sink *request_sink(struct access_log *log)
{
    return log->to_events ? &log->events : &log->lines;
}

static void write_request(struct access_log *log, const struct log_record *record, int64_t now)
{
    char line[LINE_SINK_LINE_MAX];
    struct json_writer writer;
    begin_line(log, &writer, line, sizeof(line));
    if (record->name[0] != '\0')
        json_member_string(&writer, "name", record->name);
    if (record->method[0] != '\0') {
        json_member_string(&writer, "method", record->method);
        json_member_string(&writer, "path", record->path);
    }
    json_member_int(&writer, "status", record->status);
    json_member_int(&writer, "bytes_in", (int64_t)record->bytes_in);
    json_member_int(&writer, "bytes_out", (int64_t)record->bytes_out);
    json_write_name(&writer, "ms");
    json_write_ms(&writer, now - record->started);
    if (record->proxy[0] != '\0')
        json_member_string(&writer, "proxy", record->proxy);
    if (record->rewrite) {
        json_member_string(&writer, "rewrite", record->rewrite);
        json_member_int(&writer, "links", (int64_t)record->links);
    }
    if (record->error)
        json_member_string(&writer, "error", record->error);
    json_member_string(&writer, "end", request_end_names[record->end]);
    end_line(request_sink(log), &writer);
}

/* What was refused beyond the limit, once the second is over. */
static void write_suppressed(struct access_log *log)
{
    char line[256];
    struct json_writer writer;
    begin_line(log, &writer, line, sizeof(line));
    json_member_string(&writer, "end", request_end_names[REQUEST_REFUSED]);
    json_member_int(&writer, "count", (int64_t)log->suppressed);
    end_line(request_sink(log), &writer);
    log->suppressed = 0;
}

static void new_second(struct access_log *log, int64_t now)
{
    if (now / SECONDS == log->second)
        return;
    log->second = now / SECONDS;
    log->refusals = 0;
    if (log->suppressed > 0)
        write_suppressed(log);
}

void access_log_request(struct access_log *log, struct log_record *record, int64_t now)
{
    if (!record->active)
        return;
    record->active = false;
    new_second(log, now);
    if (record->end == REQUEST_REFUSED && log->refusals >= ACCESS_LOG_REFUSALS_PER_SECOND) {
        log->suppressed++;
        return;
    }
    log->refusals += record->end == REQUEST_REFUSED;
    write_request(log, record, now);
}

void access_log_event(struct access_log *log, const char *event, const char *key, const char *value)
{
    char line[LINE_SINK_LINE_MAX];
    struct json_writer writer;
    json_writer_start(&writer, line, sizeof(line));
    json_write_object_begin(&writer);
    json_member_string(&writer, "event", event);
    write_time(log, &writer);
    json_member_string(&writer, key, value);
    end_line(&log->events, &writer);
}

/* Reports the number of lost lines as soon as there is room. */
static void report_dropped(struct line_sink *sink)
{
    char line[128];
    if (sink->dropped == 0 || sink->length + sizeof(line) > sizeof(sink->buffer))
        return;
    int length = snprintf(line, sizeof(line), "{\"event\":\"dropped\",\"lines\":%llu}\n",
                          (unsigned long long)sink->dropped);
    sink->dropped = 0;
    line_sink_add(sink, line, (size_t)length);
}

int64_t access_log_flush(struct access_log *log, int64_t now)
{
    new_second(log, now);
    report_dropped(&log->events);
    report_dropped(&log->lines);
    (void)line_sink_flush(&log->events);
    log->file_size += line_sink_flush(&log->lines);
    if (log->path && log->file_size >= ACCESS_LOG_FILE_MAX)
        rotate(log);
    bool waiting = !line_sink_is_empty(&log->events) || !line_sink_is_empty(&log->lines);
    if (waiting)
        return now + RETRY_AFTER;
    return log->suppressed > 0 ? (log->second + 1) * SECONDS : NEVER;
}

void access_log_close(struct access_log *log)
{
    (void)access_log_flush(log, log->second * SECONDS + SECONDS);
    if (log->path && log->lines.fd > STDERR_FILENO)
        fd_close(&log->lines.fd);
}
