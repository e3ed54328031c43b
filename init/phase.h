/* The phases of the server's life (enum phase in sandbox.h) and what moves it from one to the
 * next. */
#ifndef INIT_PHASE_H
#define INIT_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "init/sandbox.h"

/* Sets the phase, and when it expires (CLOCK_MONOTONIC, nanoseconds; 0: never). */
void phase_set(struct sandbox *sandbox, enum phase phase, int64_t timer);

/* Tells the server to end; after grace_ms it is killed. A second call can only shorten the
 * grace. */
void phase_shutdown(struct sandbox *sandbox, int64_t grace_ms);

/* The server was reaped. */
void phase_server_ended(struct sandbox *sandbox, int wait_status, int64_t now);

/* Goes on when the output is drained; called once per wake-up. */
void phase_check_drain(struct sandbox *sandbox, int64_t now);

/* Where nothing may be lost, counts DRAIN_LIMIT from the last wake-up at which output waited for
 * the host. Called at each wake-up before anything is handled: a credit that has just arrived must
 * not meet a timer that was set long before. */
void phase_extend_drain(struct sandbox *sandbox, int64_t now);

/* TIMER_PHASE expired. */
void phase_expire(struct sandbox *sandbox, int64_t now);

#endif
