/* The control channel over the standard input and output of a program that `wsl.exe --exec`
 * started.
 *
 * They may be pipes, terminals, sockets or a port of a virtual console, and other programs share
 * their file descriptions: O_NONBLOCK would break those programs, so it is not set. A pipe or a
 * terminal is opened again through /proc/self/fd, which makes a description of our own; a socket is
 * used with MSG_DONTWAIT; anything else (a port that can be opened once) is polled before each call
 * and written to in small pieces.
 *
 * A terminal would echo the token and cut a long line: it is made raw, and restored at the end.
 */
#include "init/host/control_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "common/os/cleanup.h"

static struct termios terminal_before;
static int terminal_fd = -1;

/* A descriptor of our own for `fd`, above the standard ones. */
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

/* False when it is no terminal. Usually input and output are the same terminal. */
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
