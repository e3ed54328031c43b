/* When to restart a process that died: with back-off, a limited number of times. Pure. */
#ifndef INIT_SYSTEM_RESTART_H
#define INIT_SYSTEM_RESTART_H

#include <stdint.h>

#include "common/os/io.h"

#define RESTARTS_MAX 10
#define RESTART_WINDOW_NS (30 * SECONDS)
#define RESTART_WAIT_FIRST_NS (50 * MILLISECONDS)
#define RESTART_WAIT_MOST_NS (2 * SECONDS)

struct restart_policy {
    int64_t times[RESTARTS_MAX]; /* of the latest restarts, oldest at `next`; 0: none */
    unsigned next;
};

/* The process died at `now` (CLOCK_MONOTONIC, nanoseconds): how long to wait before it is started
 * again, or -1 when it was restarted RESTARTS_MAX times within RESTART_WINDOW_NS. The first restart
 * is immediate, each further one within the window waits twice as long as the one before. */
int64_t restart_wait(struct restart_policy *policy, int64_t now);

#endif
