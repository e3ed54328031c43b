/* Reads the serial line into a ring and a file, and shows the last lines. */
#include "qemu-harness/launcher/machine/console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/text/escape.h"

#define LINE_SHOWN_MAX 512

int console_open(struct console *console, const char *file, struct failure *why)
{
    int pair[2];
    console->fd = console->guest_fd = console->file = -1;
    if (file) {
        console->file = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (console->file < 0)
            return failure_errno(why, errno, "--console %s", file);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return failure_errno(why, errno, "console");
    console->fd = pair[0];
    console->guest_fd = pair[1];
    return io_set_nonblocking(console->fd);
}

void console_close(struct console *console)
{
    fd_close(&console->fd);
    fd_close(&console->guest_fd);
    fd_close(&console->file);
}

static void console_keep(struct console *console, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        console->ring[(console->total + i) % CONSOLE_RING_SIZE] = bytes[i];
    console->total += length;
    if (console->file < 0 || console->file_length + length > CONSOLE_FILE_MAX)
        return;
    console->file_length += length;
    if (io_write_full(console->file, bytes, length))
        fd_close(&console->file);
}

bool console_read(struct console *console)
{
    char bytes[4096];
    while (console->fd >= 0) {
        ssize_t length = read(console->fd, bytes, sizeof(bytes));
        if (length > 0) {
            console_keep(console, bytes, (size_t)length);
            continue;
        }
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && errno == EAGAIN)
            return true;
        fd_close(&console->fd);
    }
    return false;
}

static char console_byte(const struct console *console, size_t at)
{
    return console->ring[at % CONSOLE_RING_SIZE];
}

void console_show_tail(const struct console *console, unsigned lines, FILE *out, const char *prefix)
{
    size_t oldest = console->total > CONSOLE_RING_SIZE ? console->total - CONSOLE_RING_SIZE : 0;
    size_t end = console->total;
    while (end > oldest && console_byte(console, end - 1) == '\n')
        end--;
    size_t start = end;
    for (; start > oldest; start--)
        if (console_byte(console, start - 1) == '\n' && --lines == 0)
            break;
    while (start < end) {
        char line[LINE_SHOWN_MAX], shown[LINE_SHOWN_MAX * 4];
        size_t length = 0;
        for (; start < end && console_byte(console, start) != '\n'; start++)
            if (length < sizeof(line) && console_byte(console, start) != '\r')
                line[length++] = console_byte(console, start);
        start++;
        escape_text(shown, sizeof(shown), line, length, 0);
        fprintf(out, "%s%s\n", prefix, shown);
    }
}
