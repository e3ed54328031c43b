/* One sandbox as this program holds it, and the four steps of its life.
 *
 *     sandbox_start    everything that can be refused is refused, then all processes run
 *     sandbox_run      the event loop: one poll(2), until the sandbox is over
 *     sandbox_stop     every process ended, every file removed, the terminal given back
 *
 * A phase says what may happen:
 *
 *     BOOTING    from the start of QEMU until the guest's `ready`
 *     RUNNING    the command runs
 *     STOPPING   we asked for an orderly end; a second signal kills
 *     OVER       the status is known; output still being written and QEMU still powering off are waited for
 *     DONE       nothing is left to wait for
 */
#ifndef QEMU_HARNESS_LAUNCHER_RUN_SANDBOX_H
#define QEMU_HARNESS_LAUNCHER_RUN_SANDBOX_H

#include "qemu-harness/launcher/folders/file_server.h"
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
#include "qemu-harness/launcher/machine/accelerator.h"
#include "qemu-harness/launcher/machine/console.h"
#include "qemu-harness/launcher/machine/qemu.h"
#include "qemu-harness/launcher/machine/vsock.h"
#include "qemu-harness/launcher/run/broker.h"
#include "qemu-harness/launcher/run/wsl.h"

#define EXIT_CANNOT_START 125
#define HELLO_SECONDS_TCG 60
#define HELLO_SECONDS_KVM 20
#define POWER_OFF_MS 10000   /* from `exit` or the end of the channel to the end of QEMU */
#define STOP_EXTRA_MS 15000  /* beyond the grace that the guest was given */
#define HELPER_GRACE_MS 1000 /* a file server may end a little before QEMU does */

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

    struct run_folder folder;
    struct mount_table mounts;
    struct account account;
    struct accelerator accelerator;
    struct process_table processes;
    struct file_server file_server;
    struct qemu qemu;
    struct wsl wsl;
    struct vsock vsock;
    struct broker broker;
    struct control control;
    struct console console;     /* the guest's serial line */
    struct console diagnostics; /* what QEMU and the helpers say */
    struct terminal terminal;
    struct output output, error;
    struct way_in way_in;
    struct events events;
    struct timeline timeline;

    int signals;  /* signalfd */
    char *config; /* the boot configuration, until it was sent */
    int config_length;
    char *overlay; /* --config */
    long overlay_length;
    bool config_sent, input_ended, log_drops, steers_terminal, broker_gone;
    bool config_has_time; /* --config sets unix_ns */
    bool terminated;      /* an end by a signal to us, or by a reader of our output that left */
    int first_signal;     /* that ended us, 0 for none */
    int64_t hello_by;     /* ns: deadline for the guest's hello */
    int64_t started_at;   /* ns: spawn of QEMU */
    int64_t kill_at;      /* ns: what is not over then is killed; INT64_MAX: no limit */
    int64_t helper_ended; /* ns: when a process that the guest needs had ended; 0: none has */
    enum control_stream out_stream; /* what the guest calls our standard output: stdout or tty */
    unsigned guest_notices;         /* told on standard error for the guest */
    uint64_t dropped;               /* bytes of output lost in "stdio":"log" */
};

/* Before everything else: an empty sandbox that owns nothing. */
void sandbox_init(struct sandbox *sandbox);

/* 0, or a negative errno: why->text is `STAGE: reason` then. */
int sandbox_start(struct sandbox *sandbox, struct failure *why);

/* Tells why sandbox_start failed, with what QEMU and the helpers said. */
void sandbox_report_start(struct sandbox *sandbox, const struct failure *why);

/* Returns the exit status; at once after a start that a signal ended (-EINTR). */
int sandbox_run(struct sandbox *sandbox);

/* May be called at any time, also for a sandbox that was never started. */
void sandbox_stop(struct sandbox *sandbox);

/* Parts of the loop. */

/* One line on standard error and in the events; the text must be escaped where it is hostile. */
void sandbox_notice(struct sandbox *sandbox, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The sandbox cannot go on: 125, with one line, and what the guest's console last showed. */
void sandbox_fail(struct sandbox *sandbox, bool show_console, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The status is known. */
void sandbox_over(struct sandbox *sandbox, int exit_status);

/* Asks the guest for an orderly end, or, before it can be asked, ends at once. */
void sandbox_request_stop(struct sandbox *sandbox, int exit_status_if_booting);

void sandbox_handle_control(struct sandbox *sandbox, short revents); /* sandbox_control.c */
void sandbox_accept_control(struct sandbox *sandbox);
void sandbox_handle_signals(struct sandbox *sandbox); /* sandbox_signals_linux.c */
int sandbox_watch_signals(struct sandbox *sandbox, struct failure *why);

#endif
