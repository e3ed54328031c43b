/* Loads on the relay from one process, so that an emulated processor spends its time in the relay:
 * a body that is received and sent back at once (the host checks both directions by one hash), and
 * many requests.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/wire/protocol.h"
#include "qemu-harness/probe/http_answer.h"
#include "qemu-harness/probe/probe.h"
#include "qemu-harness/probe/traffic.h"

#define HEAD_MAX 1024
#define PROCESSES_MAX 1000

struct round {
    int up;
    int broken; /* errno of sending back */
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

static void ignore_body(void *context, const void *bytes, size_t length)
{
    (void)context, (void)bytes, (void)length;
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

/* Reads an answer to its end. Returns 0 or the error. */
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

/* One GET on a connection of its own; true when the answer is whole and 200. */
static int request(const char *path)
{
    static struct answer answer;
    static int unbroken;
    CLEANUP_FD int fd = traffic_connect(RELAY_PORT);
    memset(&answer, 0, sizeof(answer));
    answer.on_head = ignore_head;
    answer.on_body = ignore_body;
    send_head(fd, "GET", path, 0);
    return !receive(&answer, fd, &unbroken) && answer.status == 200;
}

static unsigned requests(unsigned count, const char *path)
{
    unsigned right = 0;
    for (unsigned i = 0; i < count; i++)
        right += (unsigned)request(path);
    return right;
}

/* N requests one after another in each of several processes. */
static int probe_requests(int argc, char **argv)
{
    unsigned count = (unsigned)probe_number(argv[1], 1000000), failed = 0, seen = 0;
    unsigned processes = argc > 3 ? (unsigned)probe_number(argv[3], PROCESSES_MAX) : 1;
    int status;
    for (unsigned i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            probe_die("fork: %s", strerror(errno));
        if (child == 0)
            _exit(requests(count, argv[2]) == count ? PROBE_DONE : PROBE_BROKEN);
    }
    while (wait(&status) > 0) {
        seen++;
        failed += status != 0;
    }
    printf("%s: %u of %u processes got every answer\n", probe_words(argc, argv), seen - failed,
           seen);
    return failed ? PROBE_BROKEN : PROBE_DONE;
}

static const struct probe_verb verbs[] = {
    {"requests", "N PATH [PROCESSES]", "N GETs one after another, in each of several processes",
     NULL, probe_requests, 2, 3},
    {"round", "BYTES GET-PATH POST-PATH", "a body from one path to another", NULL, probe_round, 3,
     3},
};
const struct probe_verbs round_verbs = {verbs, ARRAY_LENGTH(verbs)};
