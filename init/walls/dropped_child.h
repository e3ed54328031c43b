/* A short-lived child with the rights of the server, for one task of PID 1.
 *
 * Files and processes of the guest are read there, without rights and without the secrets of this
 * start; the results come back through a pipe as records of fixed size.
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

/* The task: writes its records to `out`. `why` is NULL when the drop worked; otherwise it says what
 * failed, and the process may still be root: the task may report that and do nothing else. */
typedef void dropped_task(int out, const struct failure *why, void *argument);

/* Starts the task in a child with /dev/null as descriptors 0 to 2. 0 or a negative errno. */
int dropped_child_start(struct dropped_child *child, const struct boot_config *config,
                        const struct account *account, int cgroup_fd, dropped_task *task,
                        void *argument, struct failure *why);

/* Reads one whole record, until `deadline_ns` (CLOCK_MONOTONIC). False when the stream or the time
 * ends before. */
bool dropped_child_receive(struct dropped_child *child, void *record, size_t size,
                           int64_t deadline_ns);

/* Kills and reaps it. */
void dropped_child_end(struct dropped_child *child);

#endif
