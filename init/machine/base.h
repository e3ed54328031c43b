/* Stage `base`: the kernel's file systems and a writable root over the read-only image. */
#ifndef INIT_MACHINE_BASE_H
#define INIT_MACHINE_BASE_H

#include "common/os/failure.h"

/* Overlay over the image's root (tmpfs layer, pivot_root), then /proc /sys /dev /dev/pts /dev/shm
 * /run /tmp /var/tmp and cgroup2 from a const table, nosuid and nodev where each allows it, never
 * noexec on /tmp; /dev/fd and the standard links. Something already mounted there is fine. In an
 * initramfs the overlay is moved over the root instead of being pivoted to. 0 or a negative
 * errno. */
int base_mount(struct failure *why);

/* The same in WSL, in a mount namespace that is the caller's own: the distribution's root becomes
 * the lower layer. What is mounted in it (Windows drives, WSL's folders and sockets) is not part of
 * that layer and stays behind. Nothing that is the whole kernel's is touched; cgroup2 is
 * cgroups_create_in_wsl's to mount, and there is no console. */
int base_mount_in_wsl(struct failure *why);

#endif
