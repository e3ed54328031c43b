/* The stages of a start (design, section 4): their names, their order, and the engine that runs them. */
#ifndef INIT_STAGE_H
#define INIT_STAGE_H

#include <stdint.h>

#include "common/os/failure.h"

enum stage_id {
    STAGE_BASE,
    STAGE_CONFIG,
    STAGE_CLOCK,
    STAGE_HOSTNAME,
    STAGE_ACCOUNT,
    STAGE_MOUNTS,
    STAGE_NETWORK,
    STAGE_FIREWALL,
    STAGE_CGROUPS,
    STAGE_RELAY,
    STAGE_SELF_TEST,
    STAGE_SERVER,
    STAGE_COUNT
};

extern const char *const stage_names[STAGE_COUNT];

struct sandbox;
typedef int stage_function(struct sandbox *sandbox, struct failure *why);

/* What the engine runs and whom it tells. */
struct stage_plan {
    stage_function *const
        *functions; /* STAGE_COUNT of them, in order; NULL: there is no such stage here */
    void (*done)(struct sandbox *sandbox, enum stage_id stage, int64_t nanoseconds);
    const char *(*fail_stage)(const struct sandbox *sandbox); /* the test hook's name, or NULL */
};

/* Runs all stages in order, each timed with CLOCK_MONOTONIC and reported through plan->done. The first
 * failure ends the run: *failed is that stage, `why` its reason, the result its negative errno. A stage
 * named by the test hook fails instead of being run; `base` and `config`, which lie before the hook can
 * be known, fail as soon as it is. */
int stage_run_all(const struct stage_plan *plan, struct sandbox *sandbox, enum stage_id *failed,
                  struct failure *why);

/* Number of the stage with this name, or -1. */
int stage_find(const char *name);

#endif
