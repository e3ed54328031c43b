/* The control channel over standard input and output, as a program started by `wsl.exe --exec` has
 * them.
 *
 * They may be pipes, terminals, sockets or a port of a virtual console, and whoever else holds them
 * shares their file description: O_NONBLOCK set there would break the other's programs. So nothing
 * is set. A pipe or a terminal is opened anew through /proc/self/fd, which gives a description of
 * our own; a socket takes MSG_DONTWAIT with each call; what is left (a port that can be opened
 * once) is asked with poll(2) first and gets small pieces.
 *
 * A terminal would echo the token and cut a long line: it is made raw, and put back as it was at
 * the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "init/host/control.h"

#define WAITED_PIECE 4096 /* PIPE_BUF: what poll(2) promised room for */

static struct termios terminal_before;
static int terminal_fd = -1;

/* Our own descriptor for `fd`, above the standard ones. */
static int open_anew(int fd, int flags, enum control_io *how)
{
    struct stat status;
    char path[32];
    int own = -1;

    if (fstat(fd, &status) < 0)
        return -errno;
    *how = S_ISSOCK(status.st_mode) ? CONTROL_IO_SOCKET : CONTROL_IO_WAITED;
    if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        own = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (own >= 0)
            *how = CONTROL_IO_PLAIN;
    }
    if (own < 0 || own > STDERR_FILENO) {
        int result = own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        return result < 0 ? -errno : result;
    }
    int higher = fcntl(own, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(own);
    return higher < 0 ? -error : higher;
}

/* False when it is no terminal. Input and output are the same one, as a rule. */
static bool make_raw(int fd)
{
    struct termios raw;

    if (tcgetattr(fd, &terminal_before) < 0)
        return false;
    raw = terminal_before;
    cfmakeraw(&raw);
    if (tcsetattr(fd, TCSANOW, &raw) == 0)
        terminal_fd = fd;
    return true;
}

int control_attach_stdio(struct control *control, struct failure *why)
{
    enum control_io in_how, out_how;
    CLEANUP_FD int in = open_anew(STDIN_FILENO, O_RDONLY, &in_how);
    CLEANUP_FD int out = open_anew(STDOUT_FILENO, O_WRONLY, &out_how);

    if (in < 0 || out < 0)
        return failure_errno(why, in < 0 ? -in : -out, "open standard input and output");
    if (!make_raw(in))
        (void)make_raw(out);
    control_attach_pair(control, fd_steal(&in), in_how, fd_steal(&out), out_how);
    return 0;
}

void control_restore_terminal(void)
{
    if (terminal_fd >= 0)
        (void)tcsetattr(terminal_fd, TCSANOW, &terminal_before);
}

static bool is_ready(int fd, short events)
{
    struct pollfd entry = {.fd = fd, .events = events};

    return poll(&entry, 1, 0) > 0;
}

ssize_t control_read(int fd, enum control_io how, void *out, size_t length)
{
    if (how == CONTROL_IO_SOCKET)
        return recv(fd, out, length, MSG_DONTWAIT);
    if (how == CONTROL_IO_WAITED && !is_ready(fd, POLLIN)) {
        errno = EAGAIN;
        return -1;
    }
    return read(fd, out, length);
}

ssize_t control_write(int fd, enum control_io how, const void *data, size_t length)
{
    if (how == CONTROL_IO_SOCKET)
        return send(fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (how == CONTROL_IO_WAITED) {
        if (!is_ready(fd, POLLOUT)) {
            errno = EAGAIN;
            return -1;
        }
        length = length < WAITED_PIECE ? length : WAITED_PIECE;
    }
    return write(fd, data, length);
}
