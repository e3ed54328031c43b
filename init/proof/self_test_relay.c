/* The self-test's checks of the relay: it must work, and without a login it must not listen. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/wire/protocol.h"
#include "init/proof/self_test_internal.h"
#include "init/system/text.h"

#define BROKER_TIMEOUT_MS 15000 /* the host may be slower to start than the guest */
#define BROKER_RETRY_MS 20
#define BROKER_ANSWER_MAX 4096
#define AGENTS_OWN_STATUS 502 /* while it cannot reach the broker */
#define DNS_TIMEOUT_MS 2000
#define DNS_RETRY_MS 200

static int connect_loopback(int family, int type, uint16_t port)
{
    const struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    CLEANUP_FD int fd = socket(family, type | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    int result = family == AF_INET ? connect(fd, (const struct sockaddr *)&v4, sizeof(v4))
                                   : connect(fd, (const struct sockaddr *)&v6, sizeof(v6));
    return result < 0 ? -errno : fd_steal(&fd);
}

bool check_no_egress_without_login(const struct self_test_context *context,
                                   struct self_test_detail *detail)
{
    static const int families[] = {AF_INET, AF_INET6};

    (void)context;
    for (size_t i = 0; i < ARRAY_LENGTH(families); i++) {
        CLEANUP_FD int fd = connect_loopback(families[i], SOCK_STREAM, RELAY_PORT);
        if (fd >= 0)
            return self_test_say(detail, false, "something listens on port %d", RELAY_PORT);
    }
    return self_test_say(detail, true, "nothing listens on port %d", RELAY_PORT);
}

/* One request; the answer as far as it fits, NUL-terminated. Its length or a negative errno. */
static ssize_t ask_broker(uint16_t port, char *answer, size_t size, int64_t deadline)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    size_t have = 0;
    CLEANUP_FD int fd = connect_loopback(AF_INET, SOCK_STREAM, port);

    if (fd < 0)
        return fd;
    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != sizeof(request) - 1)
        return -EPIPE;
    while (have < size - 1) {
        if (!io_wait(fd, POLLIN, deadline))
            return -ETIMEDOUT;
        ssize_t length = recv(fd, answer + have, size - 1 - have, 0);
        if (length < 0)
            return -errno;
        if (length == 0)
            break;
        have += (size_t)length;
    }
    answer[have] = '\0';
    return (ssize_t)have;
}

/* The status of an HTTP/1.1 answer, or 0. */
static int answer_status(const char *answer)
{
    int status = 0;

    if (strncmp(answer, "HTTP/1.1 ", 9) != 0)
        return 0;
    for (const char *digit = answer + 9; *digit >= '0' && *digit <= '9' && status < 1000; digit++)
        status = status * 10 + (*digit - '0');
    return status;
}

/* The broker has no route `/` and answers with its own error; 401 or 403 mean a wrong token. */
bool check_broker_answers(const struct self_test_context *context, struct self_test_detail *detail)
{
    const struct timespec pause = {.tv_nsec = BROKER_RETRY_MS * MILLISECONDS};
    int64_t deadline = io_monotonic_ns() + BROKER_TIMEOUT_MS * MILLISECONDS;
    uint16_t port = context->config->relay.listen;
    char answer[BROKER_ANSWER_MAX];
    bool unreachable = false;
    ssize_t length;
    int status;

    for (;;) {
        length = ask_broker(port, answer, sizeof(answer), deadline);
        status = length < 0 ? 0 : answer_status(answer);
        unreachable |= status == AGENTS_OWN_STATUS || length == -ETIMEDOUT;
        bool again = length <= 0 || status == AGENTS_OWN_STATUS;
        if (!again || io_monotonic_ns() >= deadline)
            break;
        (void)nanosleep(&pause, NULL);
    }
    if (status == 401 || status == 403)
        return self_test_say(detail, false, "the broker refuses the token (%d)", status);
    if (unreachable && (length <= 0 || status == AGENTS_OWN_STATUS))
        return self_test_say(detail, false, "the broker cannot be reached");
    if (length < 0)
        return self_test_say(detail, false, "port %u: %s", port, strerror((int)-length));
    if ((status != 404 && status != 503) || !text_contains(answer, "\"codev_"))
        return self_test_say(detail, false, "the answer is not the broker's (status %d)", status);
    return self_test_say(detail, true, "the broker answers (%d)", status);
}

/* A query for example.com, type A, class IN, recursion desired (RFC 1035 section 4). */
static const unsigned char dns_query[] = {0xc0, 0xde, 1,   0,   0,   1,   0,   0,   0,   0,
                                          0,    0,    7,   'e', 'x', 'a', 'm', 'p', 'l', 'e',
                                          3,    'c',  'o', 'm', 0,   0,   1,   0,   1};
#define DNS_RCODE_NXDOMAIN 3

bool check_dns_answers_nxdomain(const struct self_test_context *context,
                                struct self_test_detail *detail)
{
    unsigned char answer[512];
    ssize_t length = -1;
    CLEANUP_FD int fd = connect_loopback(AF_INET, SOCK_DGRAM, DNS_PORT);

    (void)context;
    if (fd < 0)
        return self_test_say(detail, false, "port %d: %s", DNS_PORT, strerror(-fd));
    for (int waited = 0; length < 0 && waited < DNS_TIMEOUT_MS; waited += DNS_RETRY_MS) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (send(fd, dns_query, sizeof(dns_query), MSG_NOSIGNAL) >= 0 &&
            poll(&ready, 1, DNS_RETRY_MS) > 0)
            length = recv(fd, answer, sizeof(answer), 0);
    }
    if (length < 12)
        return self_test_say(detail, false, "no answer on port %d", DNS_PORT);
    if (answer[0] != dns_query[0] || answer[1] != dns_query[1] || (answer[2] & 0x80) == 0)
        return self_test_say(detail, false, "not a DNS answer");
    return self_test_say(detail, (answer[3] & 0xf) == DNS_RCODE_NXDOMAIN, "example.com: RCODE %d",
                         answer[3] & 0xf);
}
