/* Makes pipes and terminals for the server.
 *
 * A pipe's inode belongs to its creator and has mode 0600, which matters when it is opened by its
 * name in /proc; so the account becomes its owner. The other end of a pty is opened by descriptor
 * (TIOCGPTPEER), since a path could have been replaced.
 */
#include "init/server/server_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41) /* include/uapi/asm-generic/ioctls.h */
#endif

#define TERMINAL_MODE 0600 /* no group may open a device node */

void server_stdio_close(int fds[3])
{
    for (int number = 0; number < 3; number++)
        fd_close(&fds[number]);
}

/* One pipe whose end `ours` (0: the reading one, 1: the writing one) stays with init. */
static int make_pipe(struct server_stdio_pair *pair, int number, int ours,
                     const struct account *account, struct failure *why)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return failure_errno(why, errno, "make a pipe for descriptor %d", number);
    pair->ours[number] = ends[ours];
    pair->theirs[number] = ends[1 - ours];
    if (fchown(ends[0], account->uid, account->gid) < 0)
        return failure_errno(why, errno, "give the pipe of descriptor %d to the account", number);
    int result = io_set_nonblocking(pair->ours[number]);
    return result < 0 ? failure_errno(why, -result, "pipe of descriptor %d", number) : 0;
}

static int make_pipes(struct server_stdio_pair *pair, enum server_stdio mode,
                      const struct account *account, struct failure *why)
{
    if (mode == STDIO_LOG) {
        pair->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (pair->theirs[0] < 0)
            return failure_errno(why, errno, "open /dev/null");
    } else if (make_pipe(pair, 0, 1, account, why) < 0) {
        return -EIO;
    }
    int result = make_pipe(pair, 1, 0, account, why);
    return result < 0 ? result : make_pipe(pair, 2, 0, account, why);
}

static int make_terminal(struct server_stdio_pair *pair, const struct boot_server *server,
                         const struct account *account, struct failure *why)
{
    struct winsize size = {.ws_row = server->rows, .ws_col = server->columns};
    int unlocked = 0;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    if (master < 0)
        return failure_errno(why, errno, "open /dev/ptmx");
    pair->ours[0] = master;
    pair->ours[1] = fcntl(master, F_DUPFD_CLOEXEC, 0);
    if (pair->ours[1] < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return failure_errno(why, errno, "unlock the terminal");
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return failure_errno(why, errno, "open the terminal");
    pair->theirs[0] = slave;
    pair->theirs[1] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
    pair->theirs[2] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
    if (pair->theirs[1] < 0 || pair->theirs[2] < 0)
        return failure_errno(why, errno, "duplicate the terminal");
    if (fchown(slave, account->uid, account->gid) < 0 || fchmod(slave, TERMINAL_MODE) < 0)
        return failure_errno(why, errno, "give the terminal to the account");
    if (size.ws_row > 0 && size.ws_col > 0 && ioctl(master, TIOCSWINSZ, &size) < 0)
        return failure_errno(why, errno, "set the terminal's size");
    return 0;
}

int server_stdio_make(struct server_stdio_pair *pair, const struct boot_server *server,
                      const struct account *account, struct failure *why)
{
    *pair = (struct server_stdio_pair){.ours = {-1, -1, -1}, .theirs = {-1, -1, -1}};
    int result = server->stdio == STDIO_TTY ? make_terminal(pair, server, account, why)
                                            : make_pipes(pair, server->stdio, account, why);
    if (result < 0) {
        server_stdio_close(pair->ours);
        server_stdio_close(pair->theirs);
    }
    return result;
}
