/* The user's terminal: raw while the command uses it, and restored whenever this program ends.
 *
 * When standard input and standard output are terminals, the command gets a terminal of its own
 * and every byte is passed on, Ctrl-C too. Otherwise it gets three pipes. */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_TERMINAL_H
#define QEMU_HARNESS_LAUNCHER_GUEST_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

struct terminal {
    bool present; /* standard input and output are terminals */
    bool raw;
    struct termios saved;
};

void terminal_init(struct terminal *terminal);

/* False when the size is not known. */
bool terminal_size(unsigned *rows, unsigned *columns);

/* Does nothing without a terminal. */
void terminal_enter_raw(struct terminal *terminal);
void terminal_restore(struct terminal *terminal);

/* The end of a line that we write ourselves: a raw terminal needs a carriage return. */
const char *terminal_line_end(const struct terminal *terminal);

#endif
