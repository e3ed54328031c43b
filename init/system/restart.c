/* The restart policy: a ring of the latest restarts. */
#include "init/system/restart.h"

int64_t restart_wait(struct restart_policy *policy, int64_t now)
{
    unsigned recent = 0;
    int64_t wait = 0;

    for (unsigned number = 0; number < RESTARTS_MAX; number++)
        if (policy->times[number] != 0 && now - policy->times[number] < RESTART_WINDOW_NS)
            recent++;
    if (recent == RESTARTS_MAX)
        return -1;
    if (recent > 0)
        wait = RESTART_WAIT_FIRST_NS << (recent - 1);
    policy->times[policy->next] = now;
    policy->next = (policy->next + 1) % RESTARTS_MAX;
    return wait < RESTART_WAIT_MOST_NS ? wait : RESTART_WAIT_MOST_NS;
}
