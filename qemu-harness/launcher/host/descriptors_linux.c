/* Descriptors by pipe2(2), accept4(2) and /proc/self/fd. */
#include "qemu-harness/launcher/host/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int descriptor_pipe(int *reader, int *writer)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    *reader = ends[0];
    *writer = ends[1];
    return 0;
}

int descriptor_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

void descriptor_path(int fd, char out[DESCRIPTOR_PATH_SIZE])
{
    snprintf(out, DESCRIPTOR_PATH_SIZE, "/proc/self/fd/%d", fd);
}
