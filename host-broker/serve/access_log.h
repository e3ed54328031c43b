/* The log of requests, one JSON object each, and events for the app.
 *
 * Requests go to --log FILE (rotated: FILE and FILE.1, 16 MiB each), without --log to standard
 * error, and with `--log -` to standard output as {"event":"request",...}. Events go to standard
 * output after `ready`. No line holds a token, a query or the value of a header field.
 *
 * Up to 100 requests a second that the broker itself refuses are logged, further ones are counted,
 * so that a guest can neither fill the disk nor hide other lines among many.
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
    bool active;                            /* there is a request, which is logged when it ends */
    int64_t started;                        /* monotonic nanoseconds */
    char name[ACCESS_LOG_NAME_MAX + 1];     /* route, "" for none */
    char method[ACCESS_LOG_METHOD_MAX + 1]; /* "" when it could not be read */
    char path[ACCESS_LOG_PATH_MAX + 1];     /* without query */
    int status;                             /* 0: none was sent */
    uint64_t bytes_in, bytes_out;           /* content from and to the client */
    char proxy[PROXY_LABEL_MAX]; /* direct, pac-unavailable, HOST:PORT; "": no upstream was asked */
    const char *rewrite; /* format of a rewritten document, "encoded" if it could not be, or NULL */
    uint64_t links;      /* rewritten */
    const char *error;   /* type of the broker's own answer, or NULL */
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
    int64_t second;      /* of which `refusals` and `suppressed` are counts */
    unsigned refusals;   /* logged */
    uint64_t suppressed; /* not logged */
};

/* `path` is the value of --log, or NULL. 0 or a negative errno with a reason. */
int access_log_open(struct access_log *log, const char *path, struct failure *why);

/* SIGHUP: the file may have been renamed. */
int access_log_reopen(struct access_log *log, struct failure *why);

/* Writes the record if it is active, and makes it inactive. */
void access_log_request(struct access_log *log, struct log_record *record, int64_t now);

/* {"event":NAME, KEY:VALUE} on standard output. */
void access_log_event(struct access_log *log, const char *event, const char *key,
                      const char *value);

/* Called once per wake-up: writes buffered lines and reports counts. Returns when to call it again,
 * or NEVER. */
int64_t access_log_flush(struct access_log *log, int64_t now);

void access_log_close(struct access_log *log);

#endif
