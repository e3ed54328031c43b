/* WSL: what the process outside the sandbox does for it, in the distribution's namespaces. */
#ifndef INIT_OUTSIDE_SERVE_H
#define INIT_OUTSIDE_SERVE_H

#include "init/relay/relay_start.h"
#include "init/system/restart.h"
#include "init/wsl/wsl_link.h"

struct outside {
    int link;
    struct relay_process relay;
    struct restart_policy restarts;
    int64_t restart_at; /* CLOCK_MONOTONIC; 0: not waiting */
};

/* Answers one question of PID 1's. 0, or a negative errno when there is nobody to answer any
 * more. */
int outside_serve(struct outside *outside);

/* The outer agent ended: it is started again after a while, or the sandbox is told that it is
 * lost. */
void outside_agent_ended(struct outside *outside, int wait_status);

/* Starts it again when its time has come. */
void outside_restart(struct outside *outside);

#endif
