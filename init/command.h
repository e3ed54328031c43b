/* The host's commands (design, section 3). */
#ifndef INIT_COMMAND_H
#define INIT_COMMAND_H

#include <stddef.h>

#include "init/sandbox.h"

/* Runs the command in one line. What it does not understand becomes a warning and is otherwise
 * ignored. The line is wiped afterwards: it may have held a token. */
void command_run(struct sandbox *sandbox, char *line, size_t length);

#endif
