/* The parts of vsock that only Linux has: /dev/vhost-vsock, and the peer of an accepted
 * connection. */
#include "qemu-harness/launcher/machine/vsock_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/vhost.h>
#include <linux/vm_sockets.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/secret.h"

#define CID_FIRST 16
#define CID_TRIES 64

int vsock_open_kernel(uint32_t *guest_cid)
{
    CLEANUP_FD int fd = open("/dev/vhost-vsock", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (int i = 0; i < CID_TRIES; i++) {
        uint32_t random = 0;
        int result = secret_random(&random, sizeof(random));
        if (result)
            return result;
        /* the kernel refuses a CID that another guest has (drivers/vhost/vsock.c) */
        uint64_t cid = CID_FIRST + random % (1u << 30);
        if (ioctl(fd, VHOST_VSOCK_SET_GUEST_CID, &cid) == 0) {
            *guest_cid = (uint32_t)cid;
            return fd_steal(&fd);
        }
        if (errno != EADDRINUSE)
            return -errno;
    }
    return -EADDRINUSE;
}

/* The process at the other end of a Unix socket has our uid. */
static bool peer_is_ours(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

int vsock_accept(const struct vsock *vsock, int listener)
{
    struct sockaddr_vm peer = {0};
    socklen_t length = sizeof(peer);
    bool kernel = vsock->kind == VSOCK_KERNEL;
    CLEANUP_FD int fd = accept4(listener, kernel ? (void *)&peer : NULL, kernel ? &length : NULL,
                                SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (kernel ? peer.svm_cid != vsock->guest_cid : !peer_is_ours(fd))
        return -EPERM;
    return fd_steal(&fd);
}
