/* The broker's main loop: waits, handles events, settles marked connections. */
#ifndef HOST_BROKER_SERVE_ENGINE_H
#define HOST_BROKER_SERVE_ENGINE_H

#include "common/os/failure.h"
#include "host-broker/serve/broker.h"

/* Makes the event loop, the tables and the buffers, and starts to watch. 0 or a negative errno with
 * a reason. */
int engine_open(struct broker *broker, struct failure *why);

/* Serves until standard input ends, or SIGTERM was received and requests in progress have ended. */
void engine_run(struct broker *broker);

void engine_close(struct broker *broker);

#endif
