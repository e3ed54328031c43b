/* The questions for the host's time, and the age of the answers. */
#include "init/host_time.h"

#include <errno.h>

#include "common/os/io.h"
#include "init/host/events.h"

#define PERIOD (3000 * MILLISECONDS) /* from an answer to the next question */

/* At most one question is open: after either side has stood still, at most one old answer arrives,
 * and the time of its question bounds its age. A host that does not answer is not asked again. */
void host_time_ask(struct sandbox *sandbox, int64_t now)
{
    sandbox->time_asked_ns = now;
    if (event_time(&sandbox->control, ++sandbox->time_number) < 0)
        sandbox->timers[TIMER_TIME] = now + PERIOD;
}

int host_time_answered(struct sandbox *sandbox, int64_t number, int64_t *age_max_ns,
                       struct failure *why)
{
    const int64_t now = io_monotonic_ns();

    if (number != sandbox->time_number || sandbox->timers[TIMER_TIME] != 0)
        return failure_set(why, EINVAL, "\"number\" must be that of the event `time` it answers");
    *age_max_ns = now - sandbox->time_asked_ns;
    sandbox->timers[TIMER_TIME] = now + PERIOD;
    return 0;
}
