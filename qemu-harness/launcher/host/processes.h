/* The child processes of codev-sandbox: started, watched, ended.
 *
 * Each child has its own session, so a terminal's Ctrl-C does not reach it. It gets
 * `death_signal` when this program ends in any way (PR_SET_PDEATHSIG), inherits only the named
 * descriptors, and starts with default signal handlers. The spawn's `prepare` runs between fork
 * and exec (ids, capabilities, namespaces); its failure is a failure of the start.
 */
#ifndef QEMU_HARNESS_LAUNCHER_HOST_PROCESSES_H
#define QEMU_HARNESS_LAUNCHER_HOST_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/os/failure.h"

#define PROCESSES_MAX 80 /* one file server for each mount, and a few more */

enum process_role {
    PROCESS_GUEST,  /* ends when the guest does */
    PROCESS_BROKER, /* the guest lives on without it, and has no egress then */
    PROCESS_HELPER, /* the guest cannot live without it: a file server, the vsock device */
    PROCESS_ROLE_COUNT
};

struct process {
    pid_t pid; /* also its process group and session */
    enum process_role role;
    const char *name; /* for messages */
    bool ended;
    int status; /* of waitpid(2), once ended */
};

struct process_table {
    struct process entries[PROCESSES_MAX];
    unsigned count;
};

struct spawn {
    const char *name;                   /* for messages; outlives the process */
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

/* Reaps the children that have ended, without waiting. True when there was one. */
bool process_reap(struct process_table *table);

/* The first process of a role, or NULL. */
struct process *process_find(struct process_table *table, enum process_role role);

/* "exit status 65", "signal 9 (Killed)". */
void process_describe(const struct process *process, char *out, size_t size);

/* Ends all children: SIGTERM, up to `grace_ms` later SIGKILL, to their process groups. Returns
 * when none is left. */
void process_stop_all(struct process_table *table, int64_t grace_ms);

/* Marks every open descriptor above 2 close-on-exec. */
void process_close_inherited(void);

#endif
