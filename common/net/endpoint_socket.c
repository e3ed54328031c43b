/* Sockets for endpoints: listening and dialling. All are non-blocking, close-on-exec streams.
 *
 * `tcp:gateway` is resolved at each dial from the kernel's routing table: under WSL with NAT the
 * gateway is the Windows host, and its address changes while a sandbox runs.
 */
#include "common/net/endpoint.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/net/endpoint_internal.h"
#include "common/os/cleanup.h"

#define ROUTE_TABLE_MAX 4096 /* the kernel lists by destination: default routes come first */

static int open_socket(const struct endpoint *endpoint, const struct sockaddr_storage *address)
{
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (endpoint->kind == ENDPOINT_VSOCK)
        endpoint_tune_vsock(fd);
    return fd;
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
    /* bind(2) gives the file the socket's mode (net/unix/af_unix.c), so that it is never open to
     * others */
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
    if (endpoint->kind == ENDPOINT_VSOCK)
        endpoint->port = endpoint_vsock_port(&address);
    else if (address.ss_family == AF_INET)
        endpoint->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    else if (address.ss_family == AF_INET6)
        endpoint->port = ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}

static int bind_and_listen(int fd, struct endpoint *endpoint,
                           const struct sockaddr_storage *address, socklen_t length, int backlog)
{
    int result = prepare_listener(fd, endpoint->kind);
    if (result < 0)
        return result;
    if (bind(fd, (const struct sockaddr *)address, length) < 0)
        return -errno;
    if (listen(fd, backlog) < 0 || (result = learn_port(fd, endpoint)) < 0) {
        result = result < 0 ? result : -errno;
        if (endpoint->kind == ENDPOINT_UNIX)
            unlink(endpoint->path);
        return result;
    }
    return 0;
}

static int open_listener(struct endpoint *endpoint, int backlog)
{
    struct endpoint wanted = *endpoint;
    struct sockaddr_storage address;
    if (wanted.kind == ENDPOINT_VSOCK && wanted.port == 0)
        wanted.port = ENDPOINT_VSOCK_ANY;
    int length = endpoint_sockaddr(&wanted, &address);
    if (length < 0)
        return length;
    CLEANUP_FD int fd = open_socket(&wanted, &address);
    int result = fd < 0 ? fd : bind_and_listen(fd, endpoint, &address, (socklen_t)length, backlog);
    return result < 0 ? result : fd_steal(&fd);
}

int endpoint_listen(struct endpoint *endpoint, int backlog, struct failure *why)
{
    int result = open_listener(endpoint, backlog);
    if (result < 0) {
        char text[ENDPOINT_TEXT_MAX];
        endpoint_format(endpoint, text);
        return failure_errno(why, -result, "listen on %s", text);
    }
    return result;
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
    CLEANUP_FD int fd = open_socket(&peer, &address);
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
        route_fd = endpoint_open_routes();
        if (route_fd < 0)
            return route_fd;
    }
    return endpoint_dial_by(endpoint, route_fd);
}
