/* Connections that are held: idle ones after one request each, and event streams.
 *
 * Both open one connection after the other (a burst of a thousand would measure backlogs), say
 * `{"open":N}` when all are there, and wait for a line on standard input: meanwhile the benchmark
 * reads the memory figures. Streams then measure the delay of every event for the given time: the
 * event holds the clock at its sending, on this same machine.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/io.h"
#include "test/bench/load/load.h"

#define SAMPLES_MAX (4u * 1000 * 1000)
#define EVENT_MARK "data: "
#define EVENT_DIGITS 19
#define EVENT_WHOLE (sizeof(EVENT_MARK) - 1 + EVENT_DIGITS)
#define ANSWER_PATIENCE_MS 30000

struct stream {
    int fd;
    size_t length;
    char bytes[1024]; /* what could be the beginning of an event */
};

static struct stream *streams;
static uint64_t *samples;
static size_t sample_count;

static void send_all(int fd, const char *data, size_t length)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    if (poll(&wait, 1, ANSWER_PATIENCE_MS) <= 0)
        load_die("connect: no answer");
    if (send(fd, data, length, MSG_NOSIGNAL) != (ssize_t)length)
        load_die("send a request");
}

/* Reads an answer's head and, unless it is a stream, its whole body. */
static void read_answer(struct stream *stream)
{
    struct pollfd wait = {.fd = stream->fd, .events = POLLIN};
    size_t head;
    uint64_t body;
    for (;;) {
        if (poll(&wait, 1, ANSWER_PATIENCE_MS) <= 0)
            load_die("wait for an answer");
        ssize_t got = recv(stream->fd, stream->bytes + stream->length,
                           sizeof(stream->bytes) - stream->length, 0);
        if (got <= 0)
            load_die("receive an answer");
        stream->length += (size_t)got;
        if (load_parse_answer(stream->bytes, stream->length, &head, &body) &&
            (body == UINT64_MAX || stream->length - head == body))
            break;
    }
    stream->length = 0;
}

static void open_all(const struct load_options *options)
{
    char head[LOAD_HEAD_MAX], first[LOAD_HEAD_MAX];
    size_t length = load_request_head(options, head);
    memcpy(first, head, length + 1);
    if (options->preface)
        length = (size_t)snprintf(first, sizeof(first), "CODEV/1 %s\r\n%s", options->preface, head);
    streams = calloc(options->connections, sizeof(*streams));
    if (!streams)
        load_die("prepare");
    for (unsigned i = 0; i < options->connections; i++) {
        streams[i].fd = load_connect(&options->peer);
        send_all(streams[i].fd, first, length);
        read_answer(&streams[i]);
    }
    printf("{\"open\":%u}\n", options->connections);
    fflush(stdout);
}

static bool wait_for_line(void)
{
    char line[16];
    return fgets(line, sizeof(line), stdin);
}

int load_idle(struct load_options *options)
{
    open_all(options);
    while (wait_for_line())
        ;
    return 0;
}

static void take_events(struct stream *stream, bool counted)
{
    char *from = stream->bytes, *end = stream->bytes + stream->length, *mark;
    int64_t now = io_monotonic_ns();
    while ((mark = memmem(from, (size_t)(end - from), EVENT_MARK, sizeof(EVENT_MARK) - 1)) !=
               NULL &&
           (size_t)(end - mark) >= EVENT_WHOLE) {
        char digits[EVENT_DIGITS + 1] = "";
        memcpy(digits, mark + sizeof(EVENT_MARK) - 1, EVENT_DIGITS);
        if (counted && sample_count < SAMPLES_MAX)
            samples[sample_count++] = (uint64_t)(now - strtoll(digits, NULL, 10));
        from = mark + EVENT_WHOLE;
    }
    size_t kept = (size_t)(end - from) < EVENT_WHOLE ? (size_t)(end - from) : EVENT_WHOLE;
    memmove(stream->bytes, end - kept, kept);
    stream->length = kept;
}

static void receive(struct stream *stream, bool counted)
{
    ssize_t got = recv(stream->fd, stream->bytes + stream->length,
                       sizeof(stream->bytes) - stream->length, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0)
        load_die("an event stream ended");
    stream->length += (size_t)got;
    take_events(stream, counted);
}

int load_streams(struct load_options *options)
{
    struct epoll_event ready[256];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    samples = malloc(SAMPLES_MAX * sizeof(*samples));
    if (epoll < 0 || !samples)
        load_die("prepare");
    open_all(options);
    if (!wait_for_line())
        return 0;
    for (unsigned i = 0; i < options->connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, streams[i].fd, &event) < 0)
            load_die("watch a stream");
    }
    /* events that were queued before the first read are not counted */
    int64_t from = io_monotonic_ns() + 500000000;
    int64_t until = from + options->milliseconds * 1000000ll, now;
    while ((now = io_monotonic_ns()) < until) {
        int count = epoll_wait(epoll, ready, 256, 100);
        for (int i = 0; i < count; i++)
            receive(&streams[ready[i].data.u32], now >= from);
    }
    unsigned long long p50 = load_quantile(samples, sample_count, 500);
    unsigned long long p99 = load_quantile(samples, sample_count, 990);
    printf("{\"events\":%zu,\"p50_ns\":%llu,\"p99_ns\":%llu}\n", sample_count, p50, p99);
    return 0;
}
