/* WSL: the process outside makes a detached mount of a folder that only the distribution sees. */
#ifndef INIT_WSL_WSL_MOUNT_H
#define INIT_WSL_WSL_MOUNT_H

#include "init/wsl/wsl_link.h"

/* The mount for a request WSL_MOUNT: its descriptor, or a negative errno with a reason. The mount
 * helper of WSL gets the environment of this process unchanged. */
int wsl_mount_make(const struct wsl_message *message, struct failure *why);

#endif
