/* The server: see load.h for what it answers.
 *
 *     READING    a head is collected in `head`; what follows it belongs to the body
 *     DRAINING   the body of a POST is read and thrown away, `left` bytes of it are missing
 *     ANSWERING  `head_left` bytes of the answer's head and `left` of its body are to be sent
 *     STREAMING  an event stream: written to by the timer, read only for its end
 *
 * An answer is sent from one static block, the head copied right before the pattern that bodies are
 * made of: no body is ever copied by us. An event that a full socket does not take is dropped and
 * counted; at the end of standard input the count is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/os/io.h"
#include "test/bench/load/channel.h"
#include "test/bench/load/load.h"

#define ANSWER_HEAD_MAX 256
#define EVENT_LENGTH 33 /* "1b\r\n" and 27 bytes and "\r\n" */
#define EVENT_TICK_NS 500000
#define STEPS_PER_EVENT 16
#define LISTENER_INDEX UINT32_MAX
#define TIMER_INDEX (UINT32_MAX - 1)
#define INPUT_INDEX (UINT32_MAX - 2)

enum server_state {
    SERVER_FREE,
    SERVER_READING,
    SERVER_DRAINING,
    SERVER_ANSWERING,
    SERVER_STREAMING
};

struct server_connection {
    enum server_state state;
    struct channel channel;
    uint32_t armed, next; /* what epoll watches; link of the free list */
    size_t head_length, head_left;
    uint64_t left, answer;
    char head[LOAD_HEAD_MAX];
};

static struct server_connection *connections;
static uint32_t free_connections;
static int epoll, listener, timer;
static char answer_block[ANSWER_HEAD_MAX + LOAD_PIECE];
static uint32_t *streams; /* indices of those in SERVER_STREAMING */
static size_t stream_count, stream_next;
static uint64_t events_sent, events_dropped;
static int64_t events_since;
static unsigned event_rate, streams_wanted;
static bool over_tcp;

static void watch(int operation, int fd, uint32_t events, uint32_t index)
{
    struct epoll_event event = {.events = events, .data.u32 = index};
    if (epoll_ctl(epoll, operation, fd, &event) < 0)
        load_die("watch a descriptor");
}

static void arm(struct server_connection *connection, uint32_t events)
{
    if (events != connection->armed)
        watch(EPOLL_CTL_MOD, connection->channel.fd, events, (uint32_t)(connection - connections));
    connection->armed = events;
}

static void forget_stream(uint32_t index)
{
    for (size_t i = 0; i < stream_count; i++)
        if (streams[i] == index) {
            streams[i] = streams[--stream_count];
            return;
        }
}

static void drop(struct server_connection *connection)
{
    uint32_t index = (uint32_t)(connection - connections);
    if (connection->state == SERVER_STREAMING)
        forget_stream(index);
    channel_close(&connection->channel);
    connection->state = SERVER_FREE;
    connection->next = free_connections;
    free_connections = index;
}

static void accept_all(void)
{
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (free_connections == UINT32_MAX)
            load_die("accept: the table is full");
        /* or the first answer waits 40 ms for the acknowledgement of TLS's tickets (RFC 1122
         * section 4.2.3.4) */
        if (over_tcp && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
            load_die("send at once");
        uint32_t index = free_connections;
        struct server_connection *connection = &connections[index];
        free_connections = connection->next;
        connection->state = SERVER_READING;
        connection->head_length = 0;
        connection->armed = EPOLLIN;
        channel_open(&connection->channel, fd);
        watch(EPOLL_CTL_ADD, fd, EPOLLIN, index);
    }
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
        load_die("accept");
}

static int prepare_answer(struct server_connection *connection, char *out)
{
    return snprintf(out, ANSWER_HEAD_MAX,
                    "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
                    "Content-Length: %llu\r\n\r\n",
                    (unsigned long long)connection->answer);
}

/* True while the connection can go on at once: not behind a whole answer, since its client asks
 * again only when it has it. */
static bool answer_on(struct server_connection *connection)
{
    char head[ANSWER_HEAD_MAX];
    size_t whole = (size_t)prepare_answer(connection, head);
    char *from = answer_block + ANSWER_HEAD_MAX - connection->head_left;
    size_t length = connection->left < LOAD_PIECE ? (size_t)connection->left : LOAD_PIECE;
    memcpy(from, head + whole - connection->head_left, connection->head_left);
    ssize_t put = channel_write(&connection->channel, from, connection->head_left + length);
    if (put <= 0) {
        if (put != -EAGAIN)
            drop(connection);
        else
            arm(connection, EPOLLOUT);
        return false;
    }
    size_t of_head = (size_t)put < connection->head_left ? (size_t)put : connection->head_left;
    connection->head_left -= of_head;
    connection->left -= (size_t)put - of_head;
    if (connection->head_left == 0 && connection->left == 0) {
        connection->state = SERVER_READING;
        arm(connection, EPOLLIN);
        return false;
    }
    return true;
}

static void begin_answer(struct server_connection *connection)
{
    char head[ANSWER_HEAD_MAX];
    connection->state = SERVER_ANSWERING;
    connection->head_left = (size_t)prepare_answer(connection, head);
    connection->left = connection->answer;
}

static void begin_stream(struct server_connection *connection)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    if (channel_write(&connection->channel, head, sizeof(head) - 1) != sizeof(head) - 1)
        load_die("begin a stream");
    connection->state = SERVER_STREAMING;
    streams[stream_count++] = (uint32_t)(connection - connections);
    events_since = io_monotonic_ns();
    events_sent = 0;
}

/* The value of Content-Length, which every request that has a body has; 0 without. */
static uint64_t body_length(const char *head)
{
    for (const char *line = strchr(head, '\n'); line; line = strchr(line + 1, '\n'))
        if (strncasecmp(line + 1, "content-length:", 15) == 0)
            return strtoull(line + 16, NULL, 10);
    return 0;
}

/* The head in `head` is whole and ends at `end`; what lies behind it is a body's beginning. */
static void take_request(struct server_connection *connection, size_t end)
{
    connection->head[end - 1] = '\0';
    char *line = connection->head;
    if (strncmp(line, "CODEV/1 ", 8) == 0)
        line = strchr(line, '\n') + 1;
    char *target = strchr(line, ' ');
    char *last = target ? target + 1 + strcspn(target + 1, " ") : NULL;
    if (!last)
        load_die("read a request line");
    while (last > target && last[-1] != '/')
        last--;
    uint64_t body = body_length(line), behind = connection->head_length - end;
    connection->head_length = 0;
    if (strncmp(last, "events", 6) == 0) {
        begin_stream(connection);
        return;
    }
    if (behind > body)
        load_die("read a request: more came than was said");
    connection->answer = strtoull(last, NULL, 10);
    connection->state = SERVER_DRAINING;
    connection->left = body - behind;
    if (connection->left == 0)
        begin_answer(connection);
}

static bool read_head(struct server_connection *connection)
{
    size_t had = connection->head_length;
    ssize_t got = channel_read(&connection->channel, connection->head + had, LOAD_HEAD_MAX - had);
    if (got <= 0) {
        if (got != -EAGAIN)
            drop(connection);
        else
            arm(connection, EPOLLIN);
        return false;
    }
    connection->head_length += (size_t)got;
    char *end = memmem(connection->head, connection->head_length, "\r\n\r\n", 4);
    if (end)
        take_request(connection, (size_t)(end - connection->head) + 4);
    else if (connection->head_length == LOAD_HEAD_MAX)
        load_die("read a request: its head is too long");
    return true;
}

static bool drain_body(struct server_connection *connection)
{
    static char scrap[LOAD_PIECE];
    size_t wanted = connection->left < LOAD_PIECE ? (size_t)connection->left : LOAD_PIECE;
    ssize_t got = channel_read(&connection->channel, scrap, wanted);
    if (got <= 0) {
        if (got != -EAGAIN)
            drop(connection);
        else
            arm(connection, EPOLLIN);
        return false;
    }
    connection->left -= (uint64_t)got;
    if (connection->left == 0)
        begin_answer(connection);
    return true;
}

static bool step(struct server_connection *connection)
{
    char scrap[64];
    switch (connection->state) {
    case SERVER_FREE:
        return false;
    case SERVER_READING:
        return read_head(connection);
    case SERVER_DRAINING:
        return drain_body(connection);
    case SERVER_ANSWERING:
        return answer_on(connection);
    case SERVER_STREAMING:
        if (channel_read(&connection->channel, scrap, sizeof(scrap)) != -EAGAIN)
            drop(connection);
        return false;
    }
    return false;
}

/* Some steps at once. If there could be more, requests another wake-up, as epoll does not report
 * bytes that TLS has already read. */
static void serve_one(struct server_connection *connection)
{
    for (unsigned steps = 0; steps < STEPS_PER_EVENT; steps++)
        if (!step(connection))
            return;
    arm(connection, EPOLLIN | EPOLLOUT);
}

/* As many events as the rate demands since the last stream began, one stream after the other.
 * Nothing is sent before all streams are open, as the client does not read earlier. */
static void send_events(void)
{
    uint64_t expirations;
    (void)!read(timer, &expirations, sizeof(expirations));
    if (stream_count == 0 || stream_count < streams_wanted)
        return;
    int64_t now = io_monotonic_ns();
    uint64_t due = (uint64_t)(now - events_since) * event_rate / 1000000000u;
    for (; events_sent < due; events_sent++) {
        char event[EVENT_LENGTH + 1];
        stream_next = (stream_next + 1) % stream_count;
        snprintf(event, sizeof(event), "1b\r\ndata: %019lld\n\n\r\n", (long long)io_monotonic_ns());
        if (channel_write(&connections[streams[stream_next]].channel, event, EVENT_LENGTH) !=
            EVENT_LENGTH)
            events_dropped++;
    }
}

static void prepare(struct load_options *options)
{
    struct failure why;
    if (options->certificate)
        channel_load(options->certificate, options->key);
    memset(answer_block, 'x', sizeof(answer_block));
    connections = calloc(LOAD_CONNECTIONS_MAX, sizeof(*connections));
    streams = calloc(LOAD_CONNECTIONS_MAX, sizeof(*streams));
    epoll = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    listener = endpoint_listen(&options->peer, 4096, &why);
    if (!connections || !streams || epoll < 0 || timer < 0)
        load_die("prepare the server");
    if (listener < 0)
        load_die(why.text);
    free_connections = UINT32_MAX;
    for (uint32_t i = LOAD_CONNECTIONS_MAX; i-- > 0;) {
        connections[i].next = free_connections;
        free_connections = i;
    }
    watch(EPOLL_CTL_ADD, listener, EPOLLIN, LISTENER_INDEX);
    watch(EPOLL_CTL_ADD, timer, EPOLLIN, TIMER_INDEX);
    watch(EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN, INPUT_INDEX);
    event_rate = options->event_rate;
    over_tcp = options->peer.kind == ENDPOINT_TCP4 || options->peer.kind == ENDPOINT_TCP6;
    streams_wanted = options->connections;
    struct itimerspec every = {{0, EVENT_TICK_NS}, {0, EVENT_TICK_NS}};
    if (event_rate > 0 && timerfd_settime(timer, 0, &every, NULL) < 0)
        load_die("start the timer");
}

int load_serve(struct load_options *options)
{
    struct epoll_event ready[256];
    prepare(options);
    printf("{\"listening\":true,\"port\":%u}\n", options->peer.port);
    fflush(stdout);
    for (;;) {
        int count = epoll_wait(epoll, ready, 256, -1);
        for (int i = 0; i < count; i++) {
            uint32_t index = ready[i].data.u32;
            if (index == INPUT_INDEX) {
                printf("{\"events_dropped\":%llu}\n", (unsigned long long)events_dropped);
                return 0;
            }
            if (index == LISTENER_INDEX)
                accept_all();
            else if (index == TIMER_INDEX)
                send_events();
            else
                serve_one(&connections[index]);
        }
    }
}
