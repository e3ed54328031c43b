/* read(2), write(2) and poll(2), repeated after signals and short counts. */
#include "common/os/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/os/cleanup.h"

ssize_t io_read_full(int fd, void *out, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t got = read(fd, (char *)out + done, length - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int io_write_full(int fd, const void *data, size_t length)
{
    const char *from = data;
    while (length > 0) {
        ssize_t put = write(fd, from, length);
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            int ready = io_poll(&wait, 1, NEVER);
            if (ready < 0)
                return ready;
            continue;
        }
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        from += put;
        length -= (size_t)put;
    }
    return 0;
}

ssize_t io_read_whole(int fd, char *out, size_t size)
{
    ssize_t length = io_read_full(fd, out, size);
    if (length < 0)
        return length;
    if ((size_t)length == size) /* no room for the NUL */
        return -EFBIG;
    out[length] = '\0';
    return length;
}

ssize_t io_read_file(int directory, const char *path, int flags, char *out, size_t size)
{
    CLEANUP_FD int fd = openat(directory, path, O_RDONLY | O_CLOEXEC | flags);
    return fd < 0 ? -errno : io_read_whole(fd, out, size);
}

int io_open_regular(int directory, const char *path, int flags, struct stat *status)
{
    CLEANUP_FD int fd =
        openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    if (fd < 0 || fstat(fd, status) < 0)
        return -errno;
    return S_ISREG(status->st_mode) ? fd_steal(&fd) : -EINVAL;
}

int io_write_file(int directory, const char *path, int flags, unsigned mode, const char *text)
{
    CLEANUP_FD int fd = openat(directory, path, O_WRONLY | O_CLOEXEC | flags, mode);
    if (fd < 0)
        return -errno;
    size_t length = strlen(text);
    ssize_t put;
    do
        put = write(fd, text, length);
    while (put < 0 && errno == EINTR);
    if (put < 0)
        return -errno;
    return (size_t)put == length
               ? 0
               : -EIO; /* /proc and /sys take a value in one write or not at all */
}

bool io_next_path(const char **list, char *path)
{
    while (**list) {
        const char *begin = *list;
        size_t length = strcspn(begin, ":");
        *list = begin + length + (begin[length] == ':');
        if (length == 0 || length >= PATH_MAX)
            continue;
        memcpy(path, begin, length);
        path[length] = '\0';
        return true;
    }
    return false;
}

int io_set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

int64_t io_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECONDS + now.tv_nsec;
}

int io_timeout_ms(int64_t deadline, int64_t now)
{
    if (deadline == NEVER)
        return -1;
    if (deadline <= now)
        return 0;
    int64_t left = (deadline - now - 1) / MILLISECONDS + 1;
    return left > INT_MAX ? INT_MAX : (int)left;
}

int io_poll(struct pollfd *polls, unsigned count, int64_t deadline)
{
    for (;;) {
        int timeout = io_timeout_ms(deadline, io_monotonic_ns());
        int ready = timeout == 0 ? 0 : poll(polls, count, timeout);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0 && timeout == INT_MAX)
            continue; /* the deadline is further away than poll(2) can wait */
        return ready < 0 ? -errno : ready;
    }
}

bool io_wait(int fd, short events, int64_t deadline)
{
    struct pollfd wait = {.fd = fd, .events = events};
    return io_poll(&wait, 1, deadline) > 0;
}
