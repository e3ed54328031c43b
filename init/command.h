/* The host's commands on the control channel (doc/control-channel.md). */
#ifndef INIT_COMMAND_H
#define INIT_COMMAND_H

#include <stddef.h>

#include "init/sandbox.h"

/* Runs the command in one line. An unknown or malformed command is a warning. The line is wiped
 * afterwards, since it may hold a token. */
void command_run(struct sandbox *sandbox, char *line, size_t length);

#endif
