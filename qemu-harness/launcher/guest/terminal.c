/* Reads, changes and restores the terminal's settings. */
#include "qemu-harness/launcher/guest/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

void terminal_init(struct terminal *terminal)
{
    *terminal = (struct terminal){.present = false};
    terminal->present = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
                        tcgetattr(STDIN_FILENO, &terminal->saved) == 0;
}

bool terminal_size(unsigned *rows, unsigned *columns)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row == 0 || size.ws_col == 0)
        return false;
    *rows = size.ws_row;
    *columns = size.ws_col;
    return true;
}

void terminal_enter_raw(struct terminal *terminal)
{
    if (!terminal->present || terminal->raw)
        return;
    struct termios raw = terminal->saved;
    cfmakeraw(&raw);
    terminal->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

void terminal_restore(struct terminal *terminal)
{
    if (terminal->raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->saved);
    terminal->raw = false;
}

const char *terminal_line_end(const struct terminal *terminal)
{
    return terminal->raw ? "\r\n" : "\n";
}
