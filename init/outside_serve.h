/* WSL: what the process outside does for the sandbox, in the distribution's namespaces. */
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

/* Answers one request of PID 1. 0, or a negative errno when PID 1 has closed the link. */
int outside_serve(struct outside *outside);

/* The outer relay ended: it will be restarted, or PID 1 is told that it cannot be. */
void outside_agent_ended(struct outside *outside, int wait_status);

/* Restarts the outer relay when it is time. */
void outside_restart(struct outside *outside);

#endif
