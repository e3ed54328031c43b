/* A child that becomes another program, and says why when it cannot: the way in which server and
 * agent are started. */
#ifndef INIT_SYSTEM_CHILD_EXECUTE_H
#define INIT_SYSTEM_CHILD_EXECUTE_H

#include <sys/types.h>

#include "common/os/failure.h"

/* What the child does: it executes a program, and returns only when that failed. Its reason goes to
 * `report_fd`, which must stay open (close-on-exec) until then; the task may move it. */
typedef int executing_task(void *argument, int *report_fd, struct failure *why);

/* Runs the task in a child and waits until it has executed its program, for `limit_ms` at most. 0
 * and *pid; else -ETIMEDOUT, or another negative errno with the child's reason, and nothing of it
 * is left. */
int child_execute(pid_t *pid, executing_task *task, void *argument, int limit_ms,
                  struct failure *why);

#endif
