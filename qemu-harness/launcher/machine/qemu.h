/* The virtual machine: its files, its arguments as a table, its start.
 *
 * No path of the user's is on QEMU's command line: kernel, image, folders and the memory are inherited
 * descriptors (/proc/self/fd/N), so any name works and the ids that QEMU has need no way to them.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_QEMU_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_QEMU_H

#include <limits.h>

#include "qemu-harness/launcher/folders/file_server.h"
#include "qemu-harness/launcher/folders/mount_check.h"
#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/machine/accelerator.h"
#include "qemu-harness/launcher/machine/tick_rate.h"
#include "qemu-harness/launcher/machine/vsock.h"

struct machine; /* one row per guest architecture */

struct qemu {
    const struct machine *machine;
    char program[PATH_MAX];
    char kernel_path[PATH_MAX], image_path[PATH_MAX]; /* as chosen, for mount_check and messages */
    int kernel, image, memory;
    struct tick_sample opened; /* when it was */
};

/* Finds program, kernel and image. 0 or a negative errno. */
int qemu_open(struct qemu *qemu, const struct options *options, struct failure *why);
void qemu_close(struct qemu *qemu);

const char *qemu_arch(const struct qemu *qemu);

/* What the rest has prepared. */
struct qemu_parts {
    const struct options *options;
    const struct accelerator *accelerator;
    const struct mount_table *mounts;
    const struct file_server *file_server;
    const struct vsock *vsock;
    const struct account *account;
    const struct run_folder *folder;
    uint32_t control_port;
    int console;     /* QEMU's end of the serial line */
    int diagnostics; /* QEMU's own messages */
};

/* Starts it. RUN/memory then leads to the guest's memory. 0 or a negative errno. */
int qemu_start(struct qemu *qemu, const struct qemu_parts *parts, struct process_table *processes,
               struct failure *why);

#endif
