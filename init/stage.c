/* The engine that runs the stages. start.c and start_wsl.c hold their functions. */
#include "init/stage.h"

#include <assert.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

const char *const stage_names[] = {
    [STAGE_BASE] = "base",         [STAGE_CONFIG] = "config",       [STAGE_CLOCK] = "clock",
    [STAGE_HOSTNAME] = "hostname", [STAGE_ACCOUNT] = "account",     [STAGE_MOUNTS] = "mounts",
    [STAGE_NETWORK] = "network",   [STAGE_FIREWALL] = "firewall",   [STAGE_CGROUPS] = "cgroups",
    [STAGE_RELAY] = "relay",       [STAGE_SELF_TEST] = "self-test", [STAGE_SERVER] = "server",
};
static_assert(ARRAY_LENGTH(stage_names) == STAGE_COUNT, "a name for every stage");

int stage_run_all(const struct stage_plan *plan, struct sandbox *sandbox, enum stage_id *failed,
                  struct failure *why)
{
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        if (!plan->functions[stage])
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
