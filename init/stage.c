/* The engine that runs the stages: see stage.h. What each stage does stands in steps.c and the modules it calls. */
#include "init/stage.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

const char *const stage_names[] = {
    [STAGE_BASE] = "base",         [STAGE_CONFIG] = "config",       [STAGE_CLOCK] = "clock",
    [STAGE_HOSTNAME] = "hostname", [STAGE_ACCOUNT] = "account",     [STAGE_MOUNTS] = "mounts",
    [STAGE_NETWORK] = "network",   [STAGE_FIREWALL] = "firewall",   [STAGE_CGROUPS] = "cgroups",
    [STAGE_RELAY] = "relay",       [STAGE_SELF_TEST] = "self-test", [STAGE_SERVER] = "server",
};
static_assert(ARRAY_LENGTH(stage_names) == STAGE_COUNT, "a name for every stage");

int stage_find(const char *name)
{
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        if (strcmp(stage_names[stage], name) == 0)
            return stage;
    return -1;
}

/* The stage that the test hook wants to fail now, at the turn of `next`: that one, or an earlier one. */
static int injected_failure(const struct stage_plan *plan, const struct sandbox *sandbox, int next)
{
    const char *name = plan->fail_stage(sandbox);
    int wanted = name != NULL ? stage_find(name) : -1;

    return wanted >= 0 && wanted <= next ? wanted : -1;
}

int stage_run_all(const struct stage_plan *plan, struct sandbox *sandbox, enum stage_id *failed,
                  struct failure *why)
{
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        int injected = injected_failure(plan, sandbox, stage);
        if (injected >= 0) {
            *failed = (enum stage_id)injected;
            return failure_set(why, ECANCELED, "failed on purpose, as test.fail_stage asks");
        }
        if (plan->functions[stage] == NULL)
            continue;
        int64_t begin = io_monotonic_ns();
        int result = plan->functions[stage](sandbox, why);
        if (result < 0) {
            *failed = (enum stage_id)stage;
            return result;
        }
        plan->done(sandbox, (enum stage_id)stage, io_monotonic_ns() - begin);
    }
    return 0;
}
