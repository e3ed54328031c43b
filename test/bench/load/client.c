/* The client of requests: a closed loop. Each of its connections sends a request, reads the whole
 * answer, and begins again, on the same connection or (--fresh) on a new one. Requests that began
 * before the end of the warm-up or ended after the measured time are not counted. One sample of
 * latency a request: from its first byte's being sent (or from connect(2)) to its answer's last
 * byte.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/io.h"
#include "test/bench/load/load.h"

#define SAMPLES_MAX (4u * 1000 * 1000)
#define WARM_UP_SHARE 5 /* a fifth of the measured time goes before it */

/* Where in a chunked body we are (RFC 9112 section 7.1; no extensions and no trailers come here).
 */
enum chunk_state {
    CHUNK_SIZE, /* in the line of the next chunk's size; `body_left` is what was read of it */
    CHUNK_DATA, /* `body_left` bytes, then an empty line */
    CHUNK_LAST, /* in the empty line behind the last, empty chunk */
    CHUNK_DONE
};

struct client_connection {
    int fd;
    uint32_t armed;
    bool greeted;     /* the preface is sent */
    size_t head_sent; /* of the request's head */
    uint64_t body_sent;
    bool in_body; /* the answer's head was read */
    bool chunked;
    uint64_t body_left; /* of the body, or (chunked) of the chunk */
    enum chunk_state chunk;
    size_t length; /* of what `bytes` holds of the answer's head */
    int64_t began;
    char bytes[LOAD_HEAD_MAX];
};

static const struct load_options *options;
static struct client_connection *connections;
static char head[2][LOAD_HEAD_MAX]; /* without and with the preface */
static size_t head_length[2];
static char pattern[LOAD_PIECE];
static uint64_t *samples;
static size_t sample_count;
static uint64_t answered, bytes_moved; /* in the measured time */
static uint64_t answered_ever; /* from the first connection on: what CPU time is divided by */
static int64_t measure_from, measure_until;
static int epoll;

static void arm(struct client_connection *connection, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u32 = (uint32_t)(connection - connections)};
    if (events == connection->armed)
        return;
    if (epoll_ctl(epoll, connection->armed == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, connection->fd,
                  &event) < 0)
        load_die("watch a connection");
    connection->armed = events;
}

static void count_bytes(size_t length)
{
    int64_t now = io_monotonic_ns();
    if (now >= measure_from && now < measure_until)
        bytes_moved += length;
}

/* True when all of the request is sent. */
static bool send_request(struct client_connection *connection)
{
    bool with_preface = !connection->greeted;
    size_t wanted = head_length[with_preface];
    while (connection->head_sent < wanted) {
        ssize_t put = send(connection->fd, head[with_preface] + connection->head_sent,
                           wanted - connection->head_sent, MSG_NOSIGNAL);
        if (put < 0 && (errno == EAGAIN || errno == ENOTCONN || errno == EINPROGRESS))
            return false;
        if (put < 0)
            load_die("send a request");
        connection->head_sent += (size_t)put;
    }
    while (connection->body_sent < options->post) {
        uint64_t left = options->post - connection->body_sent;
        ssize_t put = send(connection->fd, pattern, left < LOAD_PIECE ? (size_t)left : LOAD_PIECE,
                           MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN)
            return false;
        if (put < 0)
            load_die("send a body");
        connection->body_sent += (uint64_t)put;
        count_bytes((size_t)put);
    }
    connection->greeted = true;
    return true;
}

/* Sends at once: waiting for EPOLLOUT would cost two system calls and a wake-up for each request,
 * and the client must be cheaper than the measured program. */
static void begin(struct client_connection *connection)
{
    connection->began = io_monotonic_ns();
    if (connection->fd < 0) {
        connection->fd = load_connect(&options->peer);
        connection->greeted = false;
        connection->armed = 0;
    }
    connection->head_sent = connection->length = 0;
    connection->body_sent = 0;
    connection->in_body = false;
    arm(connection, send_request(connection) ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

static void finish(struct client_connection *connection)
{
    int64_t now = io_monotonic_ns();
    answered_ever++;
    if (connection->began >= measure_from && now < measure_until) {
        answered++;
        if (sample_count < SAMPLES_MAX)
            samples[sample_count++] = (uint64_t)(now - connection->began);
    }
    if (options->fresh) {
        close(connection->fd);
        connection->fd = -1;
    }
    begin(connection);
}

static unsigned digit_of(char character)
{
    return character <= '9' ? (unsigned)character - '0' : ((unsigned)character | 32) - 'a' + 10;
}

/* One byte of a size line, or of the empty line behind a chunk's bytes, which begins the next. */
static void take_size_byte(struct client_connection *connection, char byte)
{
    if (byte == '\r')
        return;
    if (byte != '\n') {
        connection->body_left = connection->body_left * 16 + digit_of(byte);
        connection->length++;
        return;
    }
    if (connection->chunk == CHUNK_LAST)
        connection->chunk = CHUNK_DONE;
    else if (connection->length > 0)
        connection->chunk = connection->body_left > 0 ? CHUNK_DATA : CHUNK_LAST;
    connection->length = 0; /* digits of the size */
}

static void take_chunks(struct client_connection *connection, const char *bytes, size_t length)
{
    while (length > 0 && connection->chunk != CHUNK_DONE) {
        if (connection->chunk != CHUNK_DATA) {
            take_size_byte(connection, *bytes++);
            length--;
            continue;
        }
        size_t piece = length < connection->body_left ? length : (size_t)connection->body_left;
        connection->body_left -= piece;
        bytes += piece;
        length -= piece;
        if (connection->body_left == 0)
            connection->chunk = CHUNK_SIZE;
    }
}

/* True at the body's end. */
static bool take_body(struct client_connection *connection, const char *bytes, size_t length)
{
    if (options->post == 0)
        count_bytes(length);
    if (connection->chunked) {
        take_chunks(connection, bytes, length);
        return connection->chunk == CHUNK_DONE;
    }
    if (length > connection->body_left)
        load_die("an answer is longer than it says");
    connection->body_left -= length;
    return connection->body_left == 0;
}

/* What is left of an answer's head and all of its body. */
static void receive(struct client_connection *connection)
{
    static char scrap[LOAD_PIECE];
    char *into = connection->in_body ? scrap : connection->bytes + connection->length;
    size_t room = connection->in_body ? LOAD_PIECE : LOAD_HEAD_MAX - connection->length;
    ssize_t got = recv(connection->fd, into, room, 0);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0)
        load_die(got < 0 ? "receive" : "the other side closed in mid-answer");
    if (!connection->in_body) {
        size_t head_size;
        connection->length += (size_t)got;
        if (!load_parse_answer(connection->bytes, connection->length, &head_size,
                               &connection->body_left))
            return;
        connection->chunked = connection->body_left == UINT64_MAX;
        connection->in_body = true;
        into = connection->bytes + head_size;
        got = (ssize_t)(connection->length - head_size);
        connection->length = 0;
        if (connection->chunked) {
            connection->body_left = 0;
            connection->chunk = CHUNK_SIZE;
        }
    }
    if (take_body(connection, into, (size_t)got))
        finish(connection);
}

static void event(struct client_connection *connection, uint32_t events)
{
    if ((events & EPOLLOUT) && send_request(connection))
        arm(connection, EPOLLIN);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(connection);
}

static void prepare(struct load_options *given)
{
    options = given;
    connections = calloc(options->connections, sizeof(*connections));
    samples = malloc(SAMPLES_MAX * sizeof(*samples));
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!connections || !samples || epoll < 0)
        load_die("prepare the client");
    memset(pattern, 'x', sizeof(pattern));
    head_length[0] = load_request_head(options, head[0]);
    memcpy(head[1], head[0], head_length[0]);
    head_length[1] = head_length[0];
    if (options->preface)
        head_length[1] =
            (size_t)snprintf(head[1], LOAD_HEAD_MAX, "CODEV/1 %s\r\n%s", options->preface, head[0]);
    measure_from = io_monotonic_ns();
    measure_until = INT64_MAX;
    if (options->milliseconds > 0) {
        measure_from += options->milliseconds / WARM_UP_SHARE * 1000000ll;
        measure_until = measure_from + options->milliseconds * 1000000ll;
    }
}

static bool is_over(void)
{
    if (options->milliseconds > 0)
        return io_monotonic_ns() >= measure_until;
    return answered >= options->requests;
}

int load_requests(struct load_options *given)
{
    struct epoll_event ready[256];
    prepare(given);
    for (unsigned i = 0; i < options->connections; i++) {
        connections[i].fd = -1;
        begin(&connections[i]);
    }
    while (!is_over()) {
        int count = epoll_wait(epoll, ready, 256, 100);
        for (int i = 0; i < count; i++)
            event(&connections[ready[i].data.u32], ready[i].events);
    }
    int64_t until = io_monotonic_ns() < measure_until ? io_monotonic_ns() : measure_until;
    unsigned long long p50 = load_quantile(samples, sample_count, 500);
    unsigned long long p99 = load_quantile(samples, sample_count, 990);
    printf("{\"ever\":%llu,\"requests\":%llu,\"bytes\":%llu,\"ns\":%lld,\"p50_ns\":%llu,\"p99_ns\":"
           "%llu}\n",
           (unsigned long long)answered_ever, (unsigned long long)answered,
           (unsigned long long)bytes_moved, (long long)(until - measure_from), p50, p99);
    return 0;
}
