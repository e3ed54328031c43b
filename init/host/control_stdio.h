/* Connects the control channel in WSL. */
#ifndef INIT_HOST_CONTROL_STDIO_H
#define INIT_HOST_CONTROL_STDIO_H

#include "init/host/control.h"

/* Uses standard input and output, whose file descriptions stay as they are. A terminal becomes raw
 * until control_restore_terminal. */
int control_attach_stdio(struct control *control, struct failure *why);
void control_restore_terminal(void);

#endif
