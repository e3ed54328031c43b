/* One JSON object per request, and what an app wants to know of the broker as events.
 *
 * Requests go to --log FILE (rotated: FILE and FILE.1, 16 MiB each), to standard error without --log,
 * or with `--log -` to standard output as {"event":"request",...}. Events go to standard output behind
 * `ready`. Nothing written here holds a token, a query or a header's value.
 *
 * What the broker itself refuses is logged up to 100 times a second and counted beyond, so that a guest
 * cannot fill a disk or drown the lines that matter.
 */
#ifndef HOST_BROKER_SERVE_ACCESS_LOG_H
#define HOST_BROKER_SERVE_ACCESS_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/os/failure.h"
#include "host-broker/base/line_sink.h"
#include "host-broker/base/slice.h"
#include "host-broker/proxy/proxy_list.h"

#define ACCESS_LOG_FILE_MAX (16 * 1024 * 1024) /* then FILE becomes FILE.1 */
#define ACCESS_LOG_REFUSALS_PER_SECOND 100
#define ACCESS_LOG_PATH_MAX 1024 /* longer paths are cut */
#define ACCESS_LOG_METHOD_MAX 32
#define ACCESS_LOG_NAME_MAX 64

enum request_end {
    REQUEST_COMPLETE,
    REQUEST_CANCELLED,      /* the client left */
    REQUEST_UPSTREAM_ERROR, /* no answer, or one that broke off */
    REQUEST_REFUSED,        /* answered by the broker; the upstream was not asked */
    REQUEST_END_COUNT
};

extern const char *const request_end_names[REQUEST_END_COUNT];

struct log_record {
    bool active;                            /* a request to be logged when it ends */
    int64_t started;                        /* monotonic nanoseconds */
    char name[ACCESS_LOG_NAME_MAX + 1];     /* route, "" for none */
    char method[ACCESS_LOG_METHOD_MAX + 1]; /* "" when it could not be read */
    char path[ACCESS_LOG_PATH_MAX + 1];     /* without query */
    int status;                             /* 0: none was sent */
    uint64_t bytes_in, bytes_out;           /* content from and to the client */
    char proxy
        [PROXY_LABEL_MAX]; /* "" when no upstream was asked; direct, pac-unavailable, a proxy */
    const char
        *rewrite; /* format whose links were rewritten, "encoded" when they could not be, or NULL */
    uint64_t links;    /* so many */
    const char *error; /* type of the broker's own answer, or NULL */
    enum request_end end;
};

/* Copies a slice, cut to fit. */
void log_record_text(char *out, size_t size, struct slice text);

struct access_log {
    const char *path;        /* NULL: standard error or standard output */
    struct line_sink lines;  /* requests */
    struct line_sink events; /* standard output */
    bool to_events;          /* --log - */
    uint64_t file_size;
    time_t clock; /* the second that clock_text holds */
    char clock_text[32];
    size_t clock_length; /* 0: none yet */
    int64_t second;      /* in which refusals are counted */
    unsigned refusals;   /* logged in this second */
    uint64_t suppressed; /* not logged in this second */
};

/* `path` as --log has it. 0 or a negative errno with a reason. */
int access_log_open(struct access_log *log, const char *path, struct failure *why);

/* SIGHUP: the file may have been moved away. */
int access_log_reopen(struct access_log *log, struct failure *why);

/* Writes the record if it is active, and makes it inactive. */
void access_log_request(struct access_log *log, struct log_record *record, int64_t now);

/* {"event":NAME, KEY:VALUE} on standard output. */
void access_log_event(struct access_log *log, const char *event, const char *key,
                      const char *value);

/* Once per wake-up: writes what is buffered, reports what was counted. Returns when to come back, or
 * NEVER. */
int64_t access_log_flush(struct access_log *log, int64_t now);

void access_log_close(struct access_log *log);

#endif
