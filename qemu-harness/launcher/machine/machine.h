/* The machine that a sandbox runs in, as a table of functions.
 *
 * codev-sandbox has one machine, QEMU. The tests have a second program, codev-sandbox-wsl, whose
 * machine is a distribution of the WSL rig (qemu-harness/wsl-rig/launcher). A program has one
 * machine and runs one sandbox, so a machine keeps its state in static variables of its own.
 *
 * The functions are called in this order, each at most once; `close` is called in any case.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_MACHINE_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_MACHINE_H

#include "qemu-harness/launcher/folders/identity.h"
#include "qemu-harness/launcher/folders/mount_check.h"
#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/host/processes.h"
#include "qemu-harness/launcher/host/run_folder.h"
#include "qemu-harness/launcher/machine/guest_link.h"

/* What a machine is made from. The later members count once the steps that make them have run. */
struct machine_parts {
    const struct options *options;
    const struct run_folder *folder;
    struct process_table *processes;
    struct mount_table *mounts;
    const struct account *account;
    int console;     /* the machine's end of the serial line */
    int diagnostics; /* for the messages of QEMU and the other helpers */
};

/* The host's end of the control channel: one of the two descriptors, the other is -1. */
struct control_ends {
    int listener;   /* the guest connects to it */
    int connection; /* the guest is connected */
};

struct machine {
    /* Finds programs, kernel and image, and starts nothing. Tells their paths, for mount_check. */
    int (*open)(const struct machine_parts *parts, struct found_paths *found, struct failure *why);
    /* Prepares the addresses by which guest and host reach each other. */
    int (*connect)(const struct machine_parts *parts, struct guest_link *link, struct failure *why);
    /* Sets `type` and `source` of each mount, and starts the servers of the folders. */
    int (*serve_folders)(const struct machine_parts *parts, struct failure *why);
    /* Starts the guest; the process in the role PROCESS_GUEST ends when the guest does. */
    int (*start)(const struct machine_parts *parts, struct control_ends *control,
                 struct failure *why);
    /* Accepts a connection from this guest only. The descriptor (non-blocking), -EAGAIN, or another
     * negative errno for a connection that was refused. NULL: `start` gives no listener. */
    int (*accept)(int listener);
    /* Makes the guest's way in reachable at the link's `way_in`; `listen` is the address that the
     * guest reported. NULL: nothing is to be done. */
    int (*forward)(const struct machine_parts *parts, const char *listen, struct failure *why);
    void (*close)(void);
};

extern const struct machine qemu_machine;

#endif
