/* Sockets for endpoints: listening and dialling. All are non-blocking, close-on-exec streams.
 *
 * `tcp:gateway` is resolved at each dial from the kernel's routing table: under WSL with NAT the
 * gateway is the Windows host, and its address changes while a sandbox runs.
 */
#include "common/net/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "common/os/cleanup.h"
#include "common/text/number.h"

#define VSOCK_BUFFER (8 * 1024 * 1024ull)
#define VSOCK_CONNECT_TIMEOUT_US 250000
#define ROUTE_TABLE_MAX 4096 /* the kernel lists by destination: default routes come first */
#define ROUTE_UP_GATEWAY 3u  /* RTF_UP | RTF_GATEWAY */

static int family_of(enum endpoint_kind kind)
{
    switch (kind) {
    case ENDPOINT_VSOCK:
        return AF_VSOCK;
    case ENDPOINT_TCP4:
    case ENDPOINT_TCP_GATEWAY:
        return AF_INET;
    case ENDPOINT_TCP6:
        return AF_INET6;
    case ENDPOINT_UNIX:
        return AF_UNIX;
    case ENDPOINT_KIND_COUNT:
        break;
    }
    return AF_UNSPEC;
}

static int open_socket(enum endpoint_kind kind)
{
    int fd = socket(family_of(kind), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (kind == ENDPOINT_VSOCK)
        endpoint_tune_vsock(fd);
    return fd;
}

void endpoint_tune_vsock(int fd)
{
    /* the maximum first: the size is cut to it */
    unsigned long long size = VSOCK_BUFFER;
    (void)setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_MAX_SIZE, &size, sizeof(size));
    (void)setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &size, sizeof(size));
    struct timeval timeout = {.tv_usec = VSOCK_CONNECT_TIMEOUT_US};
    (void)setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &timeout, sizeof(timeout));
}

/* Options that must be set before bind(2). */
static int prepare_listener(int fd, enum endpoint_kind kind)
{
    int on = 1;
    if ((kind == ENDPOINT_TCP4 || kind == ENDPOINT_TCP6) &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
        return -errno;
    if (kind == ENDPOINT_TCP6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
        return -errno;
    /* the file that bind makes takes its mode from the socket (net/unix/af_unix.c): it is never open
     * to others, not even for a moment */
    if (kind == ENDPOINT_UNIX && fchmod(fd, 0600) < 0)
        return -errno;
    return 0;
}

/* The port that the kernel chose. */
static int learn_port(int fd, struct endpoint *endpoint)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return -errno;
    if (address.ss_family == AF_VSOCK)
        endpoint->port = ((struct sockaddr_vm *)&address)->svm_port;
    else if (address.ss_family == AF_INET)
        endpoint->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    else if (address.ss_family == AF_INET6)
        endpoint->port = ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}

static int bind_and_listen(int fd, struct endpoint *endpoint, int backlog)
{
    struct endpoint wanted = *endpoint;
    if (wanted.kind == ENDPOINT_VSOCK && wanted.port == 0)
        wanted.port = VMADDR_PORT_ANY;
    struct sockaddr_storage address;
    int length = endpoint_sockaddr(&wanted, &address);
    if (length < 0)
        return length;
    int result = prepare_listener(fd, wanted.kind);
    if (result < 0)
        return result;
    if (bind(fd, (struct sockaddr *)&address, (socklen_t)length) < 0)
        return -errno;
    if (listen(fd, backlog) < 0 || (result = learn_port(fd, endpoint)) < 0) {
        result = result < 0 ? result : -errno;
        if (wanted.kind == ENDPOINT_UNIX)
            unlink(wanted.path);
        return result;
    }
    return 0;
}

int endpoint_listen(struct endpoint *endpoint, int backlog, struct failure *why)
{
    CLEANUP_FD int fd = open_socket(endpoint->kind);
    int result = fd < 0 ? fd : bind_and_listen(fd, endpoint, backlog);
    if (result < 0) {
        char text[ENDPOINT_TEXT_MAX];
        endpoint_format(endpoint, text);
        return failure_errno(why, -result, "listen on %s", text);
    }
    return fd_steal(&fd);
}

/* A number of a row of /proc/net/route: Iface Destination Gateway Flags RefCnt Use Metric Mask ...
 * (net/ipv4/fib_trie.c). UINT32_MAX when it is not there: no field that matters has that value. */
static uint32_t route_field(const char *row, unsigned number, unsigned base)
{
    static const char blank[] = " \t";
    for (; number > 0; number--) {
        row += strspn(row, blank);
        row += strcspn(row, blank);
    }
    row += strspn(row, blank);
    uint32_t value;
    const char *end = number_read(row, base, &value);
    return end != NULL && strchr(blank, *end) != NULL ? value : UINT32_MAX;
}

int endpoint_default_gateway(const char *table, size_t length, uint8_t address[4])
{
    uint32_t best = UINT32_MAX;
    bool found = false;
    for (const char *line = table, *end; line < table + length; line = end + 1) {
        end = memchr(line, '\n', (size_t)(table + length - line));
        if (end == NULL)
            break; /* a cut line says nothing */
        char row[256];
        size_t row_length = (size_t)(end - line);
        if (row_length >= sizeof(row))
            continue;
        memcpy(row, line, row_length);
        row[row_length] = '\0';
        uint32_t destination = route_field(row, 1, 16), gateway = route_field(row, 2, 16);
        uint32_t flags = route_field(row, 3, 16), metric = route_field(row, 6, 10);
        uint32_t mask = route_field(row, 7, 16);
        if (destination != 0 || mask != 0 || (flags & ROUTE_UP_GATEWAY) != ROUTE_UP_GATEWAY)
            continue;
        if (found && metric >= best)
            continue;
        memcpy(address, &gateway, 4); /* printed as the number that its network order makes here */
        best = metric;
        found = true;
    }
    return found ? 0 : -ENETUNREACH;
}

static int resolve_gateway(struct endpoint *endpoint, int route_fd)
{
    char table[ROUTE_TABLE_MAX];
    size_t length = 0;
    while (length < sizeof(table)) {
        ssize_t got = pread(route_fd, table + length, sizeof(table) - length, (off_t)length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    endpoint->kind = ENDPOINT_TCP4;
    return endpoint_default_gateway(table, length, endpoint->address);
}

int endpoint_dial_by(const struct endpoint *endpoint, int route_fd)
{
    struct endpoint peer = *endpoint;
    struct sockaddr_storage address;
    int result = 0;
    if (peer.kind == ENDPOINT_TCP_GATEWAY)
        result = resolve_gateway(&peer, route_fd);
    if (result == 0)
        result = endpoint_sockaddr(&peer, &address);
    if (result < 0)
        return result;
    CLEANUP_FD int fd = open_socket(peer.kind);
    if (fd < 0)
        return fd;
    if (connect(fd, (struct sockaddr *)&address, (socklen_t)result) < 0 && errno != EINPROGRESS)
        return -errno;
    return fd_steal(&fd);
}

int endpoint_dial(const struct endpoint *endpoint)
{
    CLEANUP_FD int route_fd = -1;
    if (endpoint->kind == ENDPOINT_TCP_GATEWAY) {
        route_fd = open("/proc/net/route", O_RDONLY | O_CLOEXEC);
        if (route_fd < 0)
            return -errno;
    }
    return endpoint_dial_by(endpoint, route_fd);
}
