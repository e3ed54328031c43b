/* Listeners on Linux: SO_PEERCRED (unix(7)) and sockaddr_vm (vsock(7)) tell the peer. */
#include "host-broker/serve/listener.h"

#include <errno.h>
#include <libgen.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "common/os/cleanup.h"

/* Whoever can write to the folder could replace the socket by another one. */
static int check_folder(const char *path, struct failure *why)
{
    char copy[ENDPOINT_PATH_MAX];
    snprintf(copy, sizeof(copy), "%s", path);
    const char *folder = dirname(copy);
    struct stat info;
    if (lstat(folder, &info) < 0)
        return failure_errno(why, errno, "listen on unix:%s: folder %s", path, folder);
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0)
        return failure_set(
            why, EPERM,
            "listen on unix:%s: the folder %s must belong to this user and have mode 0700", path,
            folder);
    return 0;
}

/* Removes the socket file that a killed broker has left. */
static void remove_stale(const struct endpoint *endpoint)
{
    struct stat info;
    if (lstat(endpoint->path, &info) < 0 || !S_ISSOCK(info.st_mode))
        return;
    CLEANUP_FD int probe = endpoint_dial(endpoint);
    if (probe == -ECONNREFUSED)
        unlink(endpoint->path);
}

static int open_unix(struct listener *listener, struct failure *why)
{
    int result = check_folder(listener->endpoint.path, why);
    if (result < 0)
        return result;
    remove_stale(&listener->endpoint);
    int fd = endpoint_listen(&listener->endpoint, LISTENER_BACKLOG, why);
    struct stat info;
    if (fd >= 0 && lstat(listener->endpoint.path, &info) == 0) {
        listener->device = info.st_dev;
        listener->inode = info.st_ino;
    }
    return fd;
}

/* Accepted sockets inherit both options: small pieces of a stream are sent at once, and a peer that
 * disappeared is noticed. */
static void tune_tcp(int fd)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

int listener_open(struct listener *listener, const struct endpoint *endpoint, uint32_t peer_cid,
                  struct failure *why)
{
    *listener = (struct listener){.fd = -1, .endpoint = *endpoint, .peer_cid = peer_cid};
    int fd = endpoint->kind == ENDPOINT_UNIX
                 ? open_unix(listener, why)
                 : endpoint_listen(&listener->endpoint, LISTENER_BACKLOG, why);
    if (fd < 0)
        return fd;
    if (endpoint_is_tcp(endpoint))
        tune_tcp(fd);
    listener->fd = fd;
    return 0;
}

static bool unix_peer_allowed(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
        return false;
    return peer.uid == geteuid() || peer.uid == 0;
}

static bool vsock_peer_allowed(const struct sockaddr_vm *peer, uint32_t peer_cid)
{
    return peer->svm_family == AF_VSOCK && (peer_cid == 0 || peer->svm_cid == peer_cid);
}

static bool peer_allowed(const struct listener *listener, int fd,
                         const struct sockaddr_storage *address)
{
    switch (listener->endpoint.kind) {
    case ENDPOINT_UNIX:
        return unix_peer_allowed(fd);
    case ENDPOINT_VSOCK:
        return vsock_peer_allowed((const struct sockaddr_vm *)address, listener->peer_cid);
    case ENDPOINT_TCP4:
    case ENDPOINT_TCP6:
        return true;
    case ENDPOINT_TCP_GATEWAY:
    case ENDPOINT_KIND_COUNT:
        break;
    }
    return false;
}

int listener_accept(struct listener *listener)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    CLEANUP_FD int fd =
        accept4(listener->fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED ? -EPERM : -errno;
    return peer_allowed(listener, fd, &address) ? fd_steal(&fd) : -EPERM;
}

void listener_close(struct listener *listener)
{
    if (listener->fd < 0)
        return;
    fd_close(&listener->fd);
    struct stat info;
    if (listener->endpoint.kind == ENDPOINT_UNIX && lstat(listener->endpoint.path, &info) == 0 &&
        info.st_dev == listener->device && info.st_ino == listener->inode)
        unlink(listener->endpoint.path);
}
