/* codev-init-fail-stage: codev-init whose start fails in a chosen stage. For tests only.
 *
 * The program is codev-init with stage_run_all wrapped by the linker. An environment variable of
 * the server in the boot configuration names the stage: "env":{"CODEV_TEST_FAIL_STAGE":"mounts"}.
 * That stage fails instead of running. `base` and `config` run before the variable is known; they
 * are reported as failed before the next stage.
 */
#include <errno.h>
#include <string.h>

#include "init/sandbox.h"
#include "init/stage.h"

#define VARIABLE "CODEV_TEST_FAIL_STAGE="

int __real_stage_run_all(const struct stage_plan *plan, struct sandbox *sandbox,
                         enum stage_id *failed, struct failure *why);
int __wrap_stage_run_all(const struct stage_plan *plan, struct sandbox *sandbox,
                         enum stage_id *failed, struct failure *why);

static const struct stage_plan *real;
static stage_function *functions[STAGE_COUNT];
static int wanted = -1;

static int find_wanted(char *const *environment)
{
    for (; *environment; environment++)
        for (int stage = 0; stage < STAGE_COUNT; stage++)
            if (strncmp(*environment, VARIABLE, strlen(VARIABLE)) == 0 &&
                strcmp(*environment + strlen(VARIABLE), stage_names[stage]) == 0)
                return stage;
    return -1;
}

static int fail_on_purpose(struct sandbox *sandbox, struct failure *why)
{
    (void)sandbox;
    return failure_set(why, ECANCELED, "failed on purpose, as the test asks");
}

static void done(struct sandbox *sandbox, enum stage_id stage, int64_t nanoseconds)
{
    real->done(sandbox, stage, nanoseconds);
    if (stage != STAGE_CONFIG)
        return;
    wanted = find_wanted(sandbox->config.server.env);
    if (wanted >= 0)
        functions[wanted > STAGE_CONFIG ? wanted : STAGE_CONFIG + 1] = fail_on_purpose;
}

int __wrap_stage_run_all(const struct stage_plan *plan, struct sandbox *sandbox,
                         enum stage_id *failed, struct failure *why)
{
    const struct stage_plan changed = {.functions = functions, .done = done};

    real = plan;
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        functions[stage] = plan->functions[stage];
    int result = __real_stage_run_all(&changed, sandbox, failed, why);
    if (result == -ECANCELED && wanted >= 0)
        *failed = (enum stage_id)wanted;
    return result;
}
