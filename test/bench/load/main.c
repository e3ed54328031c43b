/* The command line of the load program (load.h).
 *
 *     load serve ENDPOINT [--tls CERTIFICATE KEY] [--event-rate N] [--connections STREAMS]
 *     load requests ENDPOINT [--path P] [--connections N] [--ms N | --requests N] [--post BYTES]
 *         [--fresh] [--preface T] [--accept TYPE]
 *     load idle ENDPOINT [--path P] [--connections N] [--preface T]
 *     load streams ENDPOINT [--path P] [--connections N] [--ms N] [--preface T]
 *     load copy LISTEN DIAL
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "test/bench/load/load.h"

void load_die(const char *what)
{
    fprintf(stderr, "load: %s (%s)\n", what, strerror(errno));
    exit(1);
}

int load_connect(const struct endpoint *peer)
{
    int on = 1;
    int fd = endpoint_dial(peer);
    if (fd < 0) {
        errno = -fd;
        load_die("connect");
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* no meaning but for TCP */
    return fd;
}

size_t load_request_head(const struct load_options *options, char out[LOAD_HEAD_MAX])
{
    /* about what an SDK says, so that there is header work to do */
    static const char fields[] =
        "Host: 127.0.0.1:8788\r\nUser-Agent: bench/1.0\r\n"
        "Accept-Encoding: identity\r\nContent-Type: application/json\r\n"
        "Authorization: Bearer placeholder\r\nX-Request-Id: 0123456789\r\n";
    int length =
        snprintf(out, LOAD_HEAD_MAX, "%s %s HTTP/1.1\r\nAccept: %s\r\n%s",
                 options->post > 0 ? "POST" : "GET", options->path, options->accept, fields);
    if (options->post > 0)
        length += snprintf(out + length, LOAD_HEAD_MAX - (size_t)length, "Content-Length: %llu\r\n",
                           (unsigned long long)options->post);
    length += snprintf(out + length, LOAD_HEAD_MAX - (size_t)length, "\r\n");
    return (size_t)length;
}

static int compare_samples(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

uint64_t load_quantile(uint64_t *samples, size_t count, unsigned per_mille)
{
    if (count == 0)
        return 0;
    qsort(samples, count, sizeof(*samples), compare_samples);
    return samples[(count - 1) * per_mille / 1000];
}

bool load_parse_answer(const char *bytes, size_t length, size_t *head, uint64_t *body)
{
    const char *end = memmem(bytes, length, "\r\n\r\n", 4);
    if (!end)
        return false;
    if (length < 12 || memcmp(bytes, "HTTP/1.1 200", 12) != 0)
        load_die("an answer is not 200");
    *head = (size_t)(end - bytes) + 4;
    *body = UINT64_MAX;
    for (const char *line = bytes; line < end; line++) {
        if (strncasecmp(line, "content-length:", 15) == 0)
            *body = strtoull(line + 15, NULL, 10);
        line = memchr(line, '\n', (size_t)(end + 2 - line));
        if (!line)
            break;
    }
    return true;
}

static void parse_endpoint(struct endpoint *out, const char *text, bool listens)
{
    struct failure why;
    if ((listens ? endpoint_parse_listen : endpoint_parse_dial)(out, text, &why) < 0)
        load_die(why.text);
}

/* One option, as many words as it has; their number. */
static int parse_option(struct load_options *options, char **words)
{
    unsigned *const numbers[] = {&options->connections, &options->milliseconds, &options->requests,
                                 &options->event_rate};
    static const char *const names[] = {"--connections", "--ms", "--requests", "--event-rate"};
    if (strcmp(words[0], "--fresh") == 0) {
        options->fresh = true;
        return 1;
    }
    if (!words[1])
        load_die(words[0]);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(words[0], names[i]) == 0) {
            *numbers[i] = (unsigned)strtoul(words[1], NULL, 10);
            return 2;
        }
    if (strcmp(words[0], "--path") == 0)
        options->path = words[1];
    else if (strcmp(words[0], "--accept") == 0)
        options->accept = words[1];
    else if (strcmp(words[0], "--preface") == 0)
        options->preface = words[1];
    else if (strcmp(words[0], "--post") == 0)
        options->post = strtoull(words[1], NULL, 10);
    else if (strcmp(words[0], "--tls") == 0 && words[2]) {
        options->certificate = words[1];
        options->key = words[2];
        return 3;
    } else
        load_die(words[0]);
    return 2;
}

static const struct {
    const char *name;
    int (*run)(struct load_options *options);
    bool listens;
} subcommands[] = {
    {"serve", load_serve, true}, {"requests", load_requests, false},
    {"idle", load_idle, false},  {"streams", load_streams, false},
    {"copy", load_copy, true},
};

static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    struct load_options options = {.path = "/0", .accept = "*/*", .connections = 1, .requests = 1};
    if (argc < 3)
        load_die("usage: load serve|requests|idle|streams|copy ENDPOINT [OPTION...]");
    signal(SIGPIPE, SIG_IGN);
    raise_descriptors();
    for (size_t i = 0; i < ARRAY_LENGTH(subcommands); i++) {
        if (strcmp(argv[1], subcommands[i].name) != 0)
            continue;
        int next = 3;
        parse_endpoint(&options.peer, argv[2], subcommands[i].listens);
        if (subcommands[i].run == load_copy && argc > 3)
            parse_endpoint(&options.copy, argv[next++], false);
        while (next < argc)
            next += parse_option(&options, argv + next);
        return subcommands[i].run(&options);
    }
    load_die(argv[1]);
}
