/* A short-lived child that has dropped exactly as the server will, for one task of PID 1.
 *
 * What the guest's files or processes say is read there, in a process that has lost its rights and
 * this start's secrets, and comes back as records of fixed size through a pipe.
 */
#ifndef INIT_WALLS_DROPPED_CHILD_H
#define INIT_WALLS_DROPPED_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "init/walls/drop.h"

struct dropped_child {
    pid_t pid;
    int from_fd; /* what it writes */
};

/* The task: writes its records to `out`. `why` is NULL when the drop worked; else it says what
 * failed, and the process may still be root: it may report that and nothing more. */
typedef void dropped_task(int out, const struct failure *why, void *argument);

/* Starts the task in a child with /dev/null as descriptors 0 to 2. 0 or a negative errno. */
int dropped_child_start(struct dropped_child *child, const struct boot_config *config,
                        const struct account *account, int cgroup_fd, dropped_task *task,
                        void *argument, struct failure *why);

/* Reads one whole record until CLOCK_MONOTONIC reaches `deadline_ns`. False at the end of the
 * stream, or of the time. */
bool dropped_child_receive(struct dropped_child *child, void *record, size_t size,
                           int64_t deadline_ns);

/* Kills and reaps it. */
void dropped_child_end(struct dropped_child *child);

/* The plan of such a child, which is the server's but for the terminal. `keep_fd` must stay
 * valid. */
void dropped_child_plan(struct drop_plan *plan, const struct boot_config *config,
                        const struct account *account, int cgroup_fd, const int *keep_fd);

#endif
