/* The host's time: the guest asks for it and keeps its time of day by the answers. */
#ifndef INIT_HOST_TIME_H
#define INIT_HOST_TIME_H

#include <stdint.h>

#include "init/sandbox.h"

/* TIMER_TIME expired: sends the event `time`. */
void host_time_ask(struct sandbox *sandbox, int64_t now);

/* The host answers the event `time` of this number: *age_max_ns becomes the time since that event,
 * and the next one is sent 3 s later. -EINVAL when no such event waits for an answer. */
int host_time_answered(struct sandbox *sandbox, int64_t number, int64_t *age_max_ns,
                       struct failure *why);

#endif
