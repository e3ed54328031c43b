/* Listeners that the self-test must not reach. They accept and answer nothing. Other programs share
 * this network and may try any port, so a connection as such proves nothing: the self-test itself
 * sees whether it gets a TCP connection, and its datagrams are recognised by their text. */
#include "init/proof/wsl_witness.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "init/proof/self_test_internal.h"

#define ATTEMPTS_MAX 16 /* for a port that is free for TCP and taken for UDP */
#define DISCARD_PORT 9

static int sockets[2 * WSL_WITNESSES_MAX];
static unsigned socket_count;

/* Our own address for packets to `peer`: connecting a datagram socket sends nothing. */
static bool find_source(const struct endpoint *peer, struct endpoint *source)
{
    struct sockaddr_storage address;
    socklen_t length = (socklen_t)endpoint_sockaddr(peer, &address);
    CLEANUP_FD int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) < 0)
        return false;
    length = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return false;
    *source = (struct endpoint){.kind = peer->kind};
    if (peer->kind == ENDPOINT_TCP4)
        memcpy(source->address, &((struct sockaddr_in *)&address)->sin_addr, 4);
    else
        memcpy(source->address, &((struct sockaddr_in6 *)&address)->sin6_addr, 16);
    return true;
}

static int bind_datagrams(const struct endpoint *endpoint)
{
    struct sockaddr_storage address;
    socklen_t length = (socklen_t)endpoint_sockaddr(endpoint, &address);
    CLEANUP_FD int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0)
        return -errno;
    return fd_steal(&fd);
}

static int open_one(struct endpoint endpoint, struct wsl_witness *witness, struct failure *why)
{
    int result = -EADDRINUSE;

    for (int attempt = 0; result == -EADDRINUSE && attempt < ATTEMPTS_MAX; attempt++) {
        witness->endpoint = endpoint;
        CLEANUP_FD int stream = endpoint_listen(&witness->endpoint, 1, why);
        if (stream < 0)
            return stream;
        result = bind_datagrams(&witness->endpoint);
        if (result < 0)
            continue;
        sockets[socket_count++] = result;
        sockets[socket_count++] = fd_steal(&stream);
    }
    return result < 0 ? failure_errno(why, -result, "listen for the self-test") : 0;
}

int wsl_witness_open(struct wsl_witness witnesses[WSL_WITNESSES_MAX], uint32_t *count,
                     struct failure *why)
{
    static const struct endpoint loopback[] = {
        {.kind = ENDPOINT_TCP4, .address = {127, 0, 0, 1}},
        {.kind = ENDPOINT_TCP6, .address = {[15] = 1}},
    };
    /* documentation networks (RFC 5737, RFC 3849): behind the default route, if there is one */
    static const struct endpoint beyond[] = {
        {.kind = ENDPOINT_TCP4, .port = DISCARD_PORT, .address = {192, 0, 2, 1}},
        {.kind = ENDPOINT_TCP6,
         .port = DISCARD_PORT,
         .address = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}},
    };
    struct endpoint source;

    *count = 0;
    int result = open_one(loopback[0], &witnesses[*count], why);
    if (result < 0)
        return result;
    *count += 1;
    *count += open_one(loopback[1], &witnesses[*count], why) == 0;
    for (unsigned number = 0; number < ARRAY_LENGTH(beyond); number++)
        if (find_source(&beyond[number], &source))
            *count += open_one(source, &witnesses[*count], why) == 0;
    return 0;
}

/* True when a datagram of the self-test was received. */
static bool was_reached(int fd)
{
    char bytes[64];
    ssize_t length;
    bool reached = false;

    while ((length = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) >= 0)
        reached = reached || (length == sizeof(SELF_TEST_DATAGRAM) - 1 &&
                              memcmp(bytes, SELF_TEST_DATAGRAM, (size_t)length) == 0);
    return reached;
}

bool wsl_witness_close(void)
{
    bool reached = false;

    while (socket_count > 0) {
        int fd = sockets[--socket_count];
        reached = was_reached(fd) || reached; /* a listener has nothing to receive: ENOTCONN */
        close(fd);
    }
    return reached;
}
