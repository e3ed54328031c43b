/* WSL: a folder that only the distribution sees, as a detached mount: made by the process
 * outside. */
#ifndef INIT_WSL_WSL_MOUNT_H
#define INIT_WSL_WSL_MOUNT_H

#include "init/wsl/wsl_link.h"

/* Keeps the environment that WSL gave us, for its mount helper. Before it is changed. */
int wsl_mount_make(const struct wsl_message *message, struct failure *why);

#endif
