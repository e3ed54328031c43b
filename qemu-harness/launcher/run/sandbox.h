/* One sandbox: its state, and how it ends.
 *
 *     sandbox_start    checks everything that can be refused, then starts all processes   (start.c)
 *     sandbox_run      the event loop, until the sandbox is over                          (loop.c)
 *     sandbox_stop     ends every process, removes every file, restores the terminal
 *
 * The phase says what may happen:
 *
 *     BOOTING    from the start of the guest until its event `ready`
 *     RUNNING    the command runs
 *     STOPPING   the guest was asked for an orderly end; a second signal kills
 *     OVER       the exit status is known; output is still written, and the guest may still run
 *     DONE       nothing is left to wait for
 */
#ifndef QEMU_HARNESS_LAUNCHER_RUN_SANDBOX_H
#define QEMU_HARNESS_LAUNCHER_RUN_SANDBOX_H

#include "qemu-harness/launcher/broker/broker.h"
#include "qemu-harness/launcher/folders/identity.h"
#include "qemu-harness/launcher/folders/mount_check.h"
#include "qemu-harness/launcher/guest/boot_config.h"
#include "qemu-harness/launcher/guest/control.h"
#include "qemu-harness/launcher/guest/events.h"
#include "qemu-harness/launcher/guest/output.h"
#include "qemu-harness/launcher/guest/terminal.h"
#include "qemu-harness/launcher/guest/timeline.h"
#include "qemu-harness/launcher/guest/way_in.h"
#include "qemu-harness/launcher/host/options.h"
#include "qemu-harness/launcher/host/processes.h"
#include "qemu-harness/launcher/host/run_folder.h"
#include "qemu-harness/launcher/machine/console.h"
#include "qemu-harness/launcher/machine/machine.h"

#define EXIT_CANNOT_START 125
#define POWER_OFF_MS 10000  /* from `exit` or the end of the channel to the end of the guest */
#define STOP_EXTRA_MS 15000 /* beyond the grace that the guest was given */

enum sandbox_phase {
    PHASE_BOOTING,
    PHASE_RUNNING,
    PHASE_STOPPING,
    PHASE_OVER,
    PHASE_DONE,
    PHASE_COUNT
};

struct sandbox {
    struct options options;
    enum sandbox_phase phase;
    int exit_status; /* counts from OVER on */
    int64_t now;     /* ns, read once per wake-up */

    const struct machine *machine;
    struct machine_parts parts; /* what the machine's functions are given: the members below */
    struct guest_link link;
    struct found_paths found; /* as machine->open fills it in */
    struct run_folder folder;
    struct mount_table mounts;
    struct account account;
    struct process_table processes;
    struct broker broker;
    struct control control;
    struct console console;     /* the guest's serial line */
    struct console diagnostics; /* messages of QEMU and the helpers */
    struct terminal terminal;
    struct output output, error;
    struct way_in way_in;
    struct events events;
    struct timeline timeline;

    int signals; /* signalfd */
    struct boot_config config;
    bool config_sent, input_ended, broker_gone;
    bool terminated;      /* ended by a signal to us, or by a reader of our output that left */
    int first_signal;     /* the signal that ended us, 0 for none */
    int64_t hello_by;     /* ns: deadline for the guest's hello */
    int64_t started_at;   /* ns: start of the guest */
    int64_t kill_at;      /* ns: the guest is killed then; NEVER: no limit */
    int64_t helper_ended; /* ns: when the first process that the guest needs ended; 0: none has */
    enum control_stream out_stream; /* the guest's name for our standard output: stdout or tty */
    unsigned guest_notices;         /* notices on standard error that the guest caused */
    uint64_t dropped;               /* bytes of output lost in "stdio":"log" */
};

/* Makes an empty sandbox that owns nothing. */
void sandbox_init(struct sandbox *sandbox, const struct machine *machine);

/* May be called at any time, also for a sandbox that was never started. */
void sandbox_stop(struct sandbox *sandbox);

/* One line on standard error and in the events; the text must be escaped where it is hostile. */
void sandbox_notice(struct sandbox *sandbox, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The sandbox cannot go on: exit status 125 and one line, behind the last lines of the guest's
 * console when `show_console`. */
void sandbox_fail(struct sandbox *sandbox, bool show_console, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The exit status is known. */
void sandbox_over(struct sandbox *sandbox, int exit_status);

/* Asks the guest for an orderly end. A guest that has no configuration yet is ended at once, with
 * this exit status. */
void sandbox_request_stop(struct sandbox *sandbox, int exit_status_if_booting);

#endif
