/* Breakout: the relay as a way out. Each vector sends bytes to 127.0.0.1:8788 and looks at what
 * comes back.
 *
 * A vector worked when its request was accepted: an answer with a status below 400, a second answer
 * to a smuggled request, or the text of a server that only a header named. In the control run the
 * server is `probe lenient`, which accepts any request, to show that each request works against a
 * careless relay.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/endpoint.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/wire/protocol.h"
#include "qemu-harness/probe/breakout.h"
#include "qemu-harness/probe/probe.h"

#define FIRST_ANSWER_MS 20000
#define NEXT_ANSWER_MS 300
#define CONNECTIONS 600 /* the relay's maximum is 512 */
#define ELSEWHERE "the server elsewhere"
#define HOST "Host: 127.0.0.1:8788\r\n"
#define SMUGGLED "GET /gateway/v1/models HTTP/1.1\r\n" HOST "\r\n"

enum relay_question { FIRST_STATUS, SECOND_ANSWER, OTHER_SERVER };

static int connect_relay(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(RELAY_PORT),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        fd_close(&fd);
    return fd;
}

/* Sends the text and reads the answer until no more bytes come. */
static ssize_t converse(const char *text, char *answer, size_t size)
{
    size_t length = 0;
    int patience = FIRST_ANSWER_MS;
    CLEANUP_FD int fd = connect_relay();
    if (fd < 0)
        return -1;
    (void)io_write_full(fd, text, strlen(text));
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (length < size - 1 && poll(&wait, 1, patience) > 0) {
        ssize_t got = recv(fd, answer + length, size - 1 - length, 0);
        if (got <= 0)
            break;
        length += (size_t)got;
        patience = NEXT_ANSWER_MS;
    }
    answer[length] = '\0';
    return (ssize_t)length;
}

static long ask(const struct breakout_vector *vector)
{
    static char answer[16384];
    int status = 0, answers = 0, taken = 0;
    if (converse(vector->path, answer, sizeof(answer)) < 0)
        return -1;
    for (const char *at = answer; (at = strstr(at, "HTTP/1.1 ")); at++, answers++) {
        int next = atoi(at + 9);
        status = answers == 0 ? next : status;
    }
    if (answers == 0) {
        breakout_say("the connection ended without an answer");
        errno = ECONNRESET;
        return -1;
    }
    switch ((enum relay_question)vector->number) {
    case FIRST_STATUS:
        taken = status < 400;
        break;
    case SECOND_ANSWER:
        taken = answers > 1 || status < 400;
        break;
    case OTHER_SERVER:
        taken = !!strstr(answer, ELSEWHERE);
        break;
    }
    breakout_say("HTTP %d%s", status,
                 vector->number == OTHER_SERVER && !taken ? " of the declared upstream" : "");
    errno = EPERM;
    return taken ? 0 : -1;
}

/* Opens more connections than the relay's maximum. The surplus ones must get an error; they must
 * neither wait nor end other connections. */
static long exhaust(const struct breakout_vector *vector)
{
    struct pollfd held[CONNECTIONS];
    unsigned count = 0, sent_away = 0;
    (void)vector;
    for (; count < CONNECTIONS; count++) {
        held[count] = (struct pollfd){.fd = connect_relay(), .events = POLLIN};
        if (held[count].fd < 0)
            break;
    }
    if (poll(held, count, 3000) > 0) {
        for (unsigned i = 0; i < count; i++)
            sent_away += held[i].revents != 0;
    }
    breakout_say("%u of %u connections sent away", sent_away + CONNECTIONS - count, CONNECTIONS);
    errno = EPERM;
    return sent_away || count < CONNECTIONS ? -1 : 0;
}

#define TAKEN(text, request)                                                                       \
    {                                                                                              \
        .name = (text), .attempt = ask, .path = (request), .number = FIRST_STATUS                  \
    }
#define TWO(text, request)                                                                         \
    {                                                                                              \
        .name = (text), .attempt = ask, .path = (request), .number = SECOND_ANSWER                 \
    }
#define OTHER(text, header)                                                                        \
    {                                                                                              \
        .name = (text), .attempt = ask, .number = OTHER_SERVER,                                    \
        .path = "GET /gateway/v1/models HTTP/1.1\r\nConnection: close\r\n" header "\r\n\r\n"       \
    }

static const struct breakout_vector relay[] = {
    TAKEN("CONNECT to another host",
          "CONNECT internal.example:443 HTTP/1.1\r\nHost: internal.example:443\r\n\r\n"),
    TAKEN("CONNECT to the host's loopback",
          "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n"),
    TAKEN("an absolute target",
          "GET http://internal.example/ HTTP/1.1\r\nHost: internal.example\r\n\r\n"),
    TAKEN("an absolute target with the relay as its host",
          "GET http://127.0.0.1:8788/gateway/v1/models HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("TRACE", "TRACE /gateway/v1/models HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("a name without a rule", "GET /internal.example/ HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("an undeclared host", "GET /_undeclared/internal.example HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("a target of two slashes", "GET //internal.example/ HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("a user in the name", "GET /gateway@internal.example/ HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("dot segments", "GET /gateway/../internal.example/ HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("dot segments in hex", "GET /gateway/%2e%2e/internal.example/ HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("dot segments behind a backslash",
          "GET /gateway/..\\internal.example/ HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("a control byte in the path", "GET /gateway/v1/models\x01 HTTP/1.1\r\n" HOST "\r\n"),
    TAKEN("a preface of the guest's own",
          "CODEV/1 0000000000000000000000000000000000000000000000000000000000000000\r\n" SMUGGLED),
    TAKEN("the way in's preface",
          "CODEV-IN 1 0000000000000000000000000000000000000000000000000000000000000000\n" SMUGGLED),
    TAKEN("HTTP/0.9", "GET /gateway/v1/models\r\n\r\n"),
    TAKEN("a field without a name", "GET /gateway/v1/models HTTP/1.1\r\n" HOST ": x\r\n\r\n"),
    TAKEN("a space before the colon", "GET /gateway/v1/models HTTP/1.1\r\n" HOST "X-A : b\r\n\r\n"),
    TAKEN("a folded field", "GET /gateway/v1/models HTTP/1.1\r\n" HOST "X-A: b\r\n c\r\n\r\n"),
    TAKEN("a control byte in a field",
          "GET /gateway/v1/models HTTP/1.1\r\n" HOST "X-A: b\x01\r\n\r\n"),
    TAKEN("two hosts", "GET /gateway/v1/models HTTP/1.1\r\n" HOST "Host: internal.example\r\n\r\n"),
    TWO("length and chunks",
        "POST /gateway/echo HTTP/1.1\r\n" HOST
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED),
    TWO("two lengths", "POST /gateway/echo HTTP/1.1\r\n" HOST
                       "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" SMUGGLED),
    TWO("a length with a sign",
        "POST /gateway/echo HTTP/1.1\r\n" HOST "Content-Length: +0\r\n\r\n" SMUGGLED),
    TWO("chunked with a tab", "POST /gateway/echo HTTP/1.1\r\n" HOST
                              "Transfer-Encoding: chunked\t, identity\r\n\r\n0\r\n\r\n" SMUGGLED),
    TWO("an unknown coding",
        "POST /gateway/echo HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n" SMUGGLED),
    TWO("a bare line feed", "GET /gateway/v1/models HTTP/1.1\n" HOST "\n" SMUGGLED),
    TWO("a bare carriage return",
        "GET /gateway/v1/models HTTP/1.1\r\nX-A: b\rHost: internal.example\r\n\r\n" SMUGGLED),
    TWO("a chunk size that is none", "POST /gateway/echo HTTP/1.1\r\n" HOST
                                     "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" SMUGGLED),
    OTHER("another Host", "Host: internal.example"),
    OTHER("X-Forwarded-Host", HOST "X-Forwarded-Host: internal.example"),
    OTHER("X-Original-URL", HOST "X-Original-URL: http://internal.example/"),
    OTHER("X-Rewrite-URL", HOST "X-Rewrite-URL: http://internal.example/"),
    OTHER("Forwarded", HOST "Forwarded: host=internal.example"),
    OTHER("Proxy-Authorization", HOST "Proxy-Authorization: Basic eDp5"),
    {.name = "more connections than it carries", .attempt = exhaust},
};
const struct breakout_group breakout_relay = {"the relay as a way out", relay, ARRAY_LENGTH(relay),
                                              0};

/* One answer to every end of a head, with whatever before and behind it. */
static void be_lenient(int fd)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" ELSEWHERE;
    char piece[4096], before = 0;
    ssize_t got;
    while ((got = read(fd, piece, sizeof(piece))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (piece[i] == '\r')
                continue;
            if (piece[i] == '\n' && before == '\n')
                (void)io_write_full(fd, answer, sizeof(answer) - 1);
            before = piece[i];
        }
    }
}

static int probe_lenient(int argc, char **argv)
{
    struct failure why;
    struct endpoint endpoint = {
        .kind = ENDPOINT_TCP4, .address = {127, 0, 0, 1}, .port = RELAY_PORT};
    (void)argc, (void)argv;
    int listener = endpoint_listen(&endpoint, 1024, &why);
    if (listener < 0)
        probe_die("%s", why.text);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        (void)poll(&wait, 1, -1);
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && fork() == 0) {
            be_lenient(fd);
            _exit(0);
        }
        fd_close(&fd);
    }
}

static const struct probe_verb verbs[] = {
    {"lenient", "", "a relay that takes whatever it is sent (for the control run)", NULL,
     probe_lenient, 0, 0},
};
const struct probe_verbs lenient_verbs = {verbs, ARRAY_LENGTH(verbs)};
