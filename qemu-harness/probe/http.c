/* An HTTP client for the relay at 127.0.0.1:8788: makes one request and prints the answer as it
 * arrives, or measures it.
 *
 * It sends and reads at the same time, so that it also receives an answer that comes before the
 * whole body was sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/wire/protocol.h"
#include "qemu-harness/probe/http_answer.h"
#include "qemu-harness/probe/probe.h"
#include "qemu-harness/probe/traffic.h"

#define HEAD_MAX 16384
#define BODY_FILE_MAX (16 * 1024 * 1024)
#define TIMEOUT_S 60

struct exchange {
    const char *method, *path;
    unsigned port;
    int timeout_ms;   /* without any progress */
    int quiet;        /* nothing of the answer is shown */
    const char *body; /* a body from memory, or NULL: the traffic's */
    size_t body_left;
    size_t head_length, head_sent;
    char head[HEAD_MAX];
    const char *failure; /* why the exchange failed */
    br_sha256_context received;
    struct traffic traffic;
    struct answer answer;
};

static struct exchange exchange;

static void show_head(void *context, const char *head, size_t length)
{
    struct exchange *e = context;
    if (!e->quiet)
        (void)io_write_full(STDOUT_FILENO, head, length);
}

static void take_body(void *context, const void *bytes, size_t length)
{
    struct exchange *e = context;
    br_sha256_update(&e->received, bytes, length);
    if (!e->quiet)
        (void)io_write_full(STDOUT_FILENO, bytes, length);
}

static void add_to_head(struct exchange *e, const char *text)
{
    size_t length = strlen(text);
    if (e->head_length + length > sizeof(e->head))
        probe_die("the request's head is too long");
    memcpy(e->head + e->head_length, text, length);
    e->head_length += length;
}

static void begin(struct exchange *e, const char *method, const char *path)
{
    e->method = method;
    e->path = path;
    e->port = RELAY_PORT;
    e->timeout_ms = TIMEOUT_S * 1000;
    e->answer.on_head = show_head;
    e->answer.on_body = take_body;
    e->answer.context = e;
    e->answer.no_body = strcmp(method, "HEAD") == 0;
    br_sha256_init(&e->received);
    traffic_start(&e->traffic, 0);
    add_to_head(e, method);
    add_to_head(e, " ");
    add_to_head(e, path);
    add_to_head(e, " HTTP/1.1\r\nHost: 127.0.0.1:8788\r\nConnection: close\r\n");
}

/* The end of the head, with the body's length where there is one. */
static void finish_head(struct exchange *e, int has_body, uint64_t length)
{
    char field[64];
    snprintf(field, sizeof(field), "Content-Length: %llu\r\n", (unsigned long long)length);
    if (has_body)
        add_to_head(e, field);
    add_to_head(e, "\r\n");
}

/* The next bytes to send: head, then body. */
static const void *next_to_send(struct exchange *e, size_t *length)
{
    if (e->head_sent < e->head_length) {
        *length = e->head_length - e->head_sent;
        return e->head + e->head_sent;
    }
    if (e->body) {
        *length = e->body_left;
        return e->body;
    }
    return traffic_next(&e->traffic, TRAFFIC_BLOCK, length);
}

static void sent(struct exchange *e, size_t length)
{
    if (e->head_sent < e->head_length) {
        e->head_sent += length;
    } else if (e->body) {
        e->body += length;
        e->body_left -= length;
    } else {
        traffic_taken(&e->traffic, length);
    }
}

/* One send and one receive where the socket is ready for them. 0 to go on. */
static int step(struct exchange *e, int fd)
{
    static char buffer[64 * 1024];
    size_t length;
    const void *bytes = next_to_send(e, &length);
    struct pollfd wait = {.fd = fd, .events = (short)(POLLIN | (length > 0 ? POLLOUT : 0))};
    if (poll(&wait, 1, e->timeout_ms) <= 0) {
        e->failure = "nothing moved in time";
        return -1;
    }
    if (wait.revents & POLLIN || !(wait.revents & POLLOUT)) {
        ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
        if (got < 0 && errno != EAGAIN) {
            e->failure = strerror(errno);
            return -1;
        }
        if (got == 0) {
            answer_end(&e->answer);
            e->failure = "the connection ended in the middle of the answer";
            return -1;
        }
        if (got > 0)
            answer_feed(&e->answer, buffer, (size_t)got);
    }
    if (wait.revents & POLLOUT && length > 0) {
        ssize_t put = send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put > 0)
            sent(e,
                 (size_t)put); /* reading reports the error; an answer may have arrived before it */
    }
    return 0;
}

/* Runs the exchange; 0 when the answer is complete. */
static int perform(struct exchange *e)
{
    CLEANUP_FD int fd = traffic_connect(e->port);
    while (e->answer.state != ANSWER_COMPLETE && e->answer.state != ANSWER_BAD) {
        if (step(e, fd) < 0)
            break;
    }
    if (e->answer.state == ANSWER_COMPLETE)
        return PROBE_DONE;
    fprintf(stderr, "probe: broken after %llu bytes of the body: %s\n",
            (unsigned long long)e->answer.body_bytes, e->failure ? e->failure : "that is no HTTP");
    return PROBE_BROKEN;
}

static void load_body(struct exchange *e, const char *path)
{
    char *body = malloc(BODY_FILE_MAX);
    ssize_t length = body ? io_read_file(AT_FDCWD, path, 0, body, BODY_FILE_MAX) : -ENOMEM;
    if (length < 0)
        probe_die("%s: %s", path, strerror((int)-length));
    e->body = body;
    e->body_left = (size_t)length;
}

static int probe_http(int argc, char **argv)
{
    struct exchange *e = &exchange;
    int digest = 0;
    uint64_t body_bytes = 0;
    begin(e, argv[1], argv[2]);
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--sha256") == 0) {
            digest = e->quiet = 1;
            continue;
        }
        if (i + 1 >= argc)
            probe_die("%s: no value, or no option", argv[i]);
        const char *option = argv[i++], *value = argv[i];
        if (strcmp(option, "--body-file") == 0)
            load_body(e, value);
        else if (strcmp(option, "--body-bytes") == 0)
            traffic_start(&e->traffic, body_bytes = probe_number(value, TRAFFIC_MOST));
        else if (strcmp(option, "--port") == 0)
            e->port = (unsigned)probe_number(value, 65535);
        else if (strcmp(option, "--timeout") == 0)
            e->timeout_ms = (int)probe_number(value, 100000) * 1000;
        else if (strcmp(option, "--header") == 0)
            add_to_head(e, value), add_to_head(e, "\r\n");
        else
            probe_die("%s: no such option", option);
    }
    finish_head(e, e->body || body_bytes > 0, e->body ? e->body_left : body_bytes);
    int status = perform(e);
    if (digest) {
        char text[65];
        traffic_digest(&e->received, text);
        printf("%d %llu %s\n", e->answer.status, (unsigned long long)e->answer.body_bytes, text);
    }
    return status;
}

static int probe_throughput(int argc, char **argv)
{
    struct exchange *e = &exchange;
    int up = strcmp(argv[1], "up") == 0;
    uint64_t bytes = probe_number(argv[2], TRAFFIC_MOST);
    if (!up && strcmp(argv[1], "down") != 0)
        probe_die("up or down");
    begin(e, up ? "POST" : "GET", argv[3]);
    e->quiet = 1;
    traffic_start(&e->traffic, up ? bytes : 0);
    finish_head(e, up, bytes);
    int64_t start = probe_now_us();
    int status = perform(e);
    int64_t taken = probe_now_us() - start + 1;
    char text[65];
    traffic_digest(up ? &e->traffic.hash : &e->received, text);
    if (status == PROBE_DONE && (e->answer.status != 200 || (!up && e->answer.body_bytes != bytes)))
        status = PROBE_BROKEN;
    printf("%s: HTTP %d, %llu bytes, sha256 %s, %llu MB/s\n", probe_words(argc, argv),
           e->answer.status, (unsigned long long)(up ? bytes : e->answer.body_bytes), text,
           (unsigned long long)(bytes / (uint64_t)taken));
    return status;
}

static const struct probe_verb verbs[] = {
    {"http", "METHOD PATH [OPTION...]",
     "one request: --body-file F, --body-bytes N, --header LINE, --port P, --timeout S, --sha256",
     NULL, probe_http, 2, 64},
    {"throughput", "up|down BYTES PATH", "a body of generated bytes either way, hashed and timed",
     NULL, probe_throughput, 3, 3},
};
const struct probe_verbs http_verbs = {verbs, ARRAY_LENGTH(verbs)};
