/* Stage `base`: the kernel's file systems and a writable root over the read-only image. */
#ifndef INIT_MACHINE_BASE_H
#define INIT_MACHINE_BASE_H

#include "common/os/failure.h"

/* Makes a writable overlay over the image's root, then /proc /sys /dev /dev/pts /dev/shm /run /tmp
 * /var/tmp and cgroup2, nosuid and nodev where possible, never noexec on /tmp; /dev/fd and the
 * standard links. A file system that is mounted there already is kept. 0 or a negative errno. */
int base_mount(struct failure *why);

/* The same in WSL, in the caller's own mount namespace: the distribution's root becomes the lower
 * layer. Mounts in it (Windows drives, WSL's folders and sockets) are not part of that layer. No
 * setting of the kernel is changed; wsl_cgroups_create mounts cgroup2, and there is no console. */
int base_mount_in_wsl(struct failure *why);

#endif
