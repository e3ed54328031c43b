/* codev-agent-reconnect: the relay after an attacker has taken it over. For tests only.
 *
 * The program is codev-agent with connection_open wrapped by the linker, under the same system call
 * filter. It serves a client of the forward that carries requests (127.0.0.1:8788) as the relay
 * does, unless the client sends one line of endpoints first, within a second:
 *
 *     RECONNECT tcp:10.0.2.2:50123 tcp:127.0.0.1:80\n
 *
 * It then tries to reach each endpoint with every descriptor that it holds, in two ways: by data in
 * the opening packet (MSG_FASTOPEN, which works on a listener too), and by connect() after a
 * connect() to AF_UNSPEC, which turns a TCP listener or a connected TCP socket into an unconnected
 * one. The answer is one line for each descriptor and a summary:
 *
 *     fd 3: socket 2.1: tcp:10.0.2.2:50123: Network unreachable / Network unreachable
 *     fd 4: no socket
 *     reached 0 of 12
 *
 * This breaks the listeners, which codev-init shares, and the program exits: the sandbox cannot be
 * used afterwards. To include an accepted or dialled socket, a test keeps another connection open
 * meanwhile.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/connection_state.h"
#include "common/net/endpoint.h"
#include "common/os/io.h"

#define COMMAND "RECONNECT "
#define COMMAND_WAIT_NS 1000000000
#define ATTEMPT_WAIT_NS 500000000
#define DESCRIPTORS 1400 /* above the RLIMIT_NOFILE that init sets */
#define TARGETS_MAX 16

struct attempt {
    struct endpoint targets[TARGETS_MAX];
    unsigned target_count, tried, reached;
    int client; /* receives the report; not tried itself */
};

void __real_connection_open(struct relay *relay, struct connection *connection, unsigned forward,
                            int fd);
void __wrap_connection_open(struct relay *relay, struct connection *connection, unsigned forward,
                            int fd);

static void report(const struct attempt *attempt, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (length > 0)
        (void)send(attempt->client, line, (size_t)length, MSG_NOSIGNAL);
}

/* Reads a line that begins with COMMAND; takes no other bytes from the client. */
static int has_command(int fd, char *line, size_t size)
{
    const size_t known = sizeof(COMMAND) - 1;
    int64_t end = io_monotonic_ns() + COMMAND_WAIT_NS;
    while (io_monotonic_ns() < end) {
        ssize_t length = recv(fd, line, size - 1, MSG_PEEK | MSG_DONTWAIT);
        if (length == 0 || (length < 0 && errno != EAGAIN))
            return 0;
        size_t compared = length < 0 ? 0 : (size_t)length < known ? (size_t)length : known;
        if (memcmp(line, COMMAND, compared) != 0)
            return 0;
        line[length < 0 ? 0 : length] = '\0';
        char *newline = length < 0 ? NULL : strchr(line, '\n');
        if (newline) {
            *newline = '\0';
            return 1;
        }
    }
    return 0;
}

static void read_targets(struct attempt *attempt, char *line)
{
    struct failure why;
    char *rest = NULL;
    for (char *word = strtok_r(line + sizeof(COMMAND) - 1, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        if (attempt->target_count < TARGETS_MAX &&
            endpoint_parse_dial(&attempt->targets[attempt->target_count], word, &why) == 0)
            attempt->target_count++;
}

/* The result of a connect() that may be in progress: 0, or the errno. */
static int outcome(int fd)
{
    int64_t end = io_monotonic_ns() + ATTEMPT_WAIT_NS;
    int error = 0;
    socklen_t length = sizeof(error);
    while (io_monotonic_ns() < end) {
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error != 0)
            return error != 0 ? error : errno;
        if (send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) == 0)
            return 0;
        if (errno != EAGAIN && errno != ENOTCONN)
            return errno;
    }
    return ETIMEDOUT;
}

static void forget_peer(int fd)
{
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    (void)connect(fd, &nobody, sizeof(nobody));
}

static int try_opening_packet(int fd, const struct sockaddr *address, socklen_t length)
{
    if (sendto(fd, "x", 1, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, address, length) < 0 &&
        errno != EINPROGRESS)
        return errno;
    return outcome(fd);
}

static int try_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    if (connect(fd, address, length) < 0 && errno != EINPROGRESS)
        return errno;
    return outcome(fd);
}

static void try_target(struct attempt *attempt, int fd, int domain, int type,
                       const struct endpoint *target)
{
    struct sockaddr_storage address;
    char text[ENDPOINT_TEXT_MAX];
    int length = endpoint_sockaddr(target, &address);
    if (length < 0)
        return;
    endpoint_format(target, text);
    int packet = try_opening_packet(fd, (struct sockaddr *)&address, (socklen_t)length);
    forget_peer(fd);
    int connected = try_connect(fd, (struct sockaddr *)&address, (socklen_t)length);
    forget_peer(fd);
    attempt->tried += 2;
    attempt->reached += (packet == 0) + (connected == 0);
    report(attempt, "fd %d: socket %d.%d: %s: %s / %s\n", fd, domain, type, text,
           packet ? strerror(packet) : "REACHED", connected ? strerror(connected) : "REACHED");
}

static void try_descriptor(struct attempt *attempt, int fd)
{
    int domain = 0, type = 0;
    socklen_t length = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0) {
        if (errno != EBADF)
            report(attempt, "fd %d: no socket\n", fd);
        return;
    }
    (void)getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length);
    for (unsigned i = 0; i < attempt->target_count; i++)
        try_target(attempt, fd, domain, type, &attempt->targets[i]);
}

void __wrap_connection_open(struct relay *relay, struct connection *connection, unsigned forward,
                            int fd)
{
    static char line[1024];
    struct attempt attempt = {.client = fd};
    if (!role_rules[relay->config.forwards[forward].role].carries_requests ||
        !has_command(fd, line, sizeof(line))) {
        __real_connection_open(relay, connection, forward, fd);
        return;
    }
    read_targets(&attempt, line);
    for (int other = 0; other < DESCRIPTORS; other++)
        if (other != fd)
            try_descriptor(&attempt, other);
    report(&attempt, "reached %u of %u\n", attempt.reached, attempt.tried);
    shutdown(fd, SHUT_WR);
    __real_connection_open(relay, connection, forward, fd);
    connection_close(relay, connection);
}
