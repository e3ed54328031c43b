/* The stages of a start: their names, their order, and the engine that runs them. */
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

struct stage_plan {
    stage_function *const *functions; /* STAGE_COUNT of them; NULL: the stage does not exist here */
    void (*done)(struct sandbox *sandbox, enum stage_id stage, int64_t nanoseconds);
};

/* Runs all stages in order, each timed with CLOCK_MONOTONIC and reported through plan->done. The
 * first failure ends the run: *failed is that stage, `why` its reason, the result its negative
 * errno. */
int stage_run_all(const struct stage_plan *plan, struct sandbox *sandbox, enum stage_id *failed,
                  struct failure *why);

#endif
