/* Everything that codev-init holds, in one structure that exists once. */
#ifndef INIT_SANDBOX_H
#define INIT_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "init/config/boot_config.h"
#include "init/host/control.h"
#include "init/machine/account.h"
#include "init/machine/cgroups.h"
#include "init/proof/self_test.h"
#include "init/relay/relay_start.h"
#include "init/server/server.h"
#include "init/server/server_io.h"
#include "init/stage.h"
#include "init/system/restart.h"
#include "init/wsl/wsl_link.h"
#include "nft/firewall.h"

/* The server's life. Only phase.c and supervise.c change it. */
enum phase {
    PHASE_NONE,     /* no server yet. Left when it is started */
    PHASE_STARTING, /* its port does not accept yet. Left when it does, by its end, a shutdown */
    PHASE_RUNNING,  /* ready. Left by its end, a shutdown */
    PHASE_ENDING,   /* it got SIGTERM. Left by its end, by the end of the grace */
    PHASE_DRAINING, /* it ended; output of its group is read for DRAIN_LIMIT */
    PHASE_KILLED,   /* its group was killed; what is in the pipes is read for DRAIN_LIMIT */
    PHASE_ENDED,    /* nothing of it is left */
    PHASE_COUNT
};

/* One-shot timers of the event loop. */
enum timer {
    TIMER_READY_PROBE,
    TIMER_READY_LIMIT,
    TIMER_AGENT_RESTART,
    TIMER_PHASE,
    TIMER_TIME, /* off while the host owes an answer to the event `time`, and in WSL */
    TIMER_COUNT
};

struct sandbox {
    enum boot_place place;
    int64_t started_ns; /* PID 1's first instructions, CLOCK_MONOTONIC */
    bool mounted;       /* the stage `mounts` was begun */
    struct boot_config config;
    struct control control;
    struct account account;
    struct firewall firewall;
    struct cgroups cgroups;
    struct check_report report;

    struct relay_process relay;
    struct restart_policy relay_restarts;

    struct server server;
    struct server_io io;
    enum phase phase;
    bool hurry; /* a shutdown was asked for: output is read for DRAIN_LIMIT only */
    bool acknowledged;
    int64_t timers[TIMER_COUNT]; /* CLOCK_MONOTONIC; 0: off */
    int64_t probe_wait_ns;
    int64_t time_number;   /* of the last event `time` */
    int64_t time_asked_ns; /* when that event, or `hello`, was sent; CLOCK_MONOTONIC */
    int signal_fd;
    int own_cgroup_fd;      /* WSL: the cgroup in which codev-init was started; -1 without one */
    uint32_t witness_count; /* WSL: listeners outside, for the self-test */
    struct wsl_witness witnesses[WSL_WITNESSES_MAX];
    int outside_fd; /* WSL: the socket to the process outside (wsl_link.h); else -1 */
};

#endif
