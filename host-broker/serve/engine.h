/* The broker's loop: waits, has what is ready handled, settles what was marked. */
#ifndef HOST_BROKER_SERVE_ENGINE_H
#define HOST_BROKER_SERVE_ENGINE_H

#include "common/os/failure.h"
#include "host-broker/serve/broker.h"

/* Tables, buffers, libcurl, signals. 0 or a negative errno. Before it nothing is watched. */
int engine_open(struct broker *broker, struct failure *why);

/* Serves until SIGTERM has drained or standard input ends. */
void engine_run(struct broker *broker);

void engine_close(struct broker *broker);

#endif
