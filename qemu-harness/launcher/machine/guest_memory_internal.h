/* The guest's memory: a shared file that the file servers and the vsock device map too.
 *
 * It is a memory file (memfd): it never reaches a disk, takes no room in the runtime folder and
 * vanishes with its last user. RUN/memory links to it, so that it can be searched while the guest
 * runs. Only QEMU's account may open it.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_GUEST_MEMORY_INTERNAL_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_GUEST_MEMORY_INTERNAL_H

#include <sys/types.h>

#include "qemu-harness/launcher/folders/identity.h"
#include "qemu-harness/launcher/host/run_folder.h"

/* The descriptor or a negative errno. */
int guest_memory_make(long mebibytes, const struct account *account, struct failure *why);

int guest_memory_link(const struct run_folder *folder, pid_t qemu, int memory, struct failure *why);

#endif
