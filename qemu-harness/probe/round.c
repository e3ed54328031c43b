/* A body that comes through the relay and goes back through it at once, so that the host, which hashes faster
 * than an emulated processor, judges both directions by one hash.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/protocol.h"
#include "qemu-harness/probe/http_answer.h"
#include "qemu-harness/probe/probe.h"
#include "qemu-harness/probe/traffic.h"

#define HEAD_MAX 1024

struct round {
    int up;
    int broken; /* errno of the way back */
    struct answer answer;
};

static void pass_on(void *context, const void *bytes, size_t length)
{
    struct round *round = context;
    if (!round->broken)
        round->broken = -io_write_full(round->up, bytes, length);
}

static void show(void *context, const void *bytes, size_t length)
{
    (void)context;
    (void)io_write_full(STDOUT_FILENO, bytes, length);
}

static void ignore_head(void *context, const char *head, size_t length)
{
    (void)context, (void)head, (void)length;
}

static void send_head(int fd, const char *method, const char *path, uint64_t length)
{
    char head[HEAD_MAX];
    int size = snprintf(head, sizeof(head),
                        "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n"
                        "Content-Length: %llu\r\n\r\n",
                        method, path, RELAY_PORT, (unsigned long long)length);
    if (size >= (int)sizeof(head) || io_write_full(fd, head, (size_t)size) < 0)
        probe_die("%s %s: cannot be sent", method, path);
}

/* Reads an answer to its end; 0, or what broke it. */
static const char *receive(struct answer *answer, int fd, const int *broken)
{
    static char buffer[64 * 1024];
    while (answer->state != ANSWER_COMPLETE && answer->state != ANSWER_BAD) {
        ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
        if (got < 0)
            return strerror(errno);
        if (got == 0) {
            answer_end(answer);
            break;
        }
        answer_feed(answer, buffer, (size_t)got);
        if (*broken)
            return strerror(*broken);
    }
    return answer->state == ANSWER_COMPLETE ? NULL : "it broke off";
}

static int probe_round(int argc, char **argv)
{
    static struct round round;
    static struct answer verdict;
    uint64_t bytes = probe_number(argv[1], TRAFFIC_MOST);
    CLEANUP_FD int down = traffic_connect(RELAY_PORT);
    CLEANUP_FD int up = traffic_connect(RELAY_PORT);
    (void)argc;
    round.up = up;
    round.answer.on_head = verdict.on_head = ignore_head;
    round.answer.on_body = pass_on;
    round.answer.context = &round;
    verdict.on_body = show;
    send_head(down, "GET", argv[2], 0);
    send_head(up, "POST", argv[3], bytes);
    const char *fault = receive(&round.answer, down, &round.broken);
    if (fault || round.answer.body_bytes != bytes)
        probe_die("%s: %s after %llu bytes", argv[2], fault ? fault : "ended",
                  (unsigned long long)round.answer.body_bytes);
    fault = receive(&verdict, up, &round.broken);
    if (fault)
        probe_die("%s: %s", argv[3], fault);
    return verdict.status == 200 ? PROBE_DONE : PROBE_BROKEN;
}

static const struct probe_verb verbs[] = {
    {"round", "BYTES GET-PATH POST-PATH", "a body from one path to another", NULL, probe_round, 3,
     3},
};
const struct probe_verbs round_verbs = {verbs, ARRAY_LENGTH(verbs)};
