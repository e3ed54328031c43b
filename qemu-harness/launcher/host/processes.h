/* The children of codev-sandbox: started, watched, ended, none forgotten.
 *
 * Each runs in a session of its own (a terminal's Ctrl-C is not for it), is sent `death_signal` when we
 * die, whatever way (PR_SET_PDEATHSIG), and inherits no descriptor but those named. All signals are as a
 * fresh process expects them. What must happen between fork and exec (ids, capabilities, namespaces) is
 * the spawn's `prepare`, whose failure is reported as a failure of the start itself.
 */
#ifndef QEMU_HARNESS_LAUNCHER_HOST_PROCESSES_H
#define QEMU_HARNESS_LAUNCHER_HOST_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/os/failure.h"

#define PROCESSES_MAX 80 /* one file server per mount, and a few */

enum process_role {
    PROCESS_QEMU,
    PROCESS_BROKER,
    PROCESS_VSOCK_DEVICE,
    PROCESS_FILE_SERVER,
    PROCESS_WSL,     /* the stand-in for wsl.exe that holds the control channel */
    PROCESS_FORWARD, /* WSL's localhost forwarding */
    PROCESS_ROLE_COUNT
};

extern const char *const process_role_names[PROCESS_ROLE_COUNT];

struct process {
    pid_t pid; /* also its process group and session */
    enum process_role role;
    bool ended;
    int status; /* of waitpid(2), once ended */
};

struct process_table {
    struct process entries[PROCESSES_MAX];
    unsigned count;
};

struct spawn {
    const char *const *argv;            /* argv[0] is a path or found in PATH */
    int stdin_fd, stdout_fd, stderr_fd; /* -1: /dev/null */
    const int *keep;                    /* inherited under their own numbers */
    unsigned keep_count;
    int death_signal;
    const char *preload; /* a library for the dynamic loader; NULL: none */
    int (*prepare)(void *context, struct failure *); /* runs in the child; may be NULL */
    void *context;
};

/* The index in the table, or a negative errno. The program has been executed when this returns. */
int process_spawn(struct process_table *table, enum process_role role, const struct spawn *spawn,
                  struct failure *why);

/* Collects what has ended, without waiting. True when something did. */
bool process_reap(struct process_table *table);

/* The first process of a role, or NULL. */
struct process *process_find(struct process_table *table, enum process_role role);

/* "exit status 65", "signal 9 (Killed)". */
void process_describe(const struct process *process, char *out, size_t size);

/* Ends all: SIGTERM, at most `grace_ms`, then SIGKILL to their groups; returns when none is left. */
void process_stop_all(struct process_table *table, int64_t grace_ms);

/* Marks every descriptor above 2 that we were started with close-on-exec. */
void process_close_inherited(void);

#endif
