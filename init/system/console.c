/* /dev/console, else the kernel's log, else standard error. */
#include "init/system/console.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/failure.h"

static bool no_console;

void console_is_stderr(void)
{
    no_console = true;
}

void console_write(const char *text)
{
    static const char *const places[] = {"/dev/console", "/dev/kmsg"};
    char line[FAILURE_TEXT_MAX + 64];
    int length = snprintf(line, sizeof(line), "codev-init: %s\n", text);

    if (length >= (int)sizeof(line))
        length = sizeof(line) - 1;
    for (unsigned number = 0; !no_console && number < ARRAY_LENGTH(places); number++) {
        CLEANUP_FD int fd = open(places[number], O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && write(fd, line, (size_t)length) > 0)
            return;
    }
    (void)!write(STDERR_FILENO, line, (size_t)length);
}
