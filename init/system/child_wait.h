/* The end of a short-lived child that PID 1 made for one task. */
#ifndef INIT_SYSTEM_CHILD_WAIT_H
#define INIT_SYSTEM_CHILD_WAIT_H

#include <stdbool.h>
#include <sys/types.h>

/* Waits at most this long for the child's end and reaps it. False when it did not end: it is then
 * still there. */
bool child_wait(pid_t child, int timeout_ms);

/* Kills the child and reaps it. One that the kernel cannot end (it waits for a file server that is
 * gone) is left to the reaper after a second. */
void child_end(pid_t child);

#endif
