/* Child processes: started with a pipe for the reason of a failure, and waited for with a limit. */
#ifndef COMMON_OS_CHILD_LINUX_H
#define COMMON_OS_CHILD_LINUX_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/os/failure.h"

#define CHILD_NO_LIMIT (-1) /* as `limit_ms` */

/* What the child does. A negative errno with a reason when it failed. The reason reaches the parent
 * through `report_fd`; a task that moves or closes descriptors keeps this one open, close-on-exec,
 * and may change its number. */
typedef int child_task(void *argument, int *report_fd, struct failure *why);

/* For a task that executes a program and returns only when that failed. Waits until the program was
 * executed, `limit_ms` at most: a program on a file system that the host serves may never come. 0
 * and *pid, or a negative errno with the child's reason, or -ETIMEDOUT. After a failure there is no
 * child: it was reaped, or at a time-out killed and left to whoever reaps. */
int child_execute(pid_t *pid, child_task *task, void *argument, int limit_ms, struct failure *why);

/* For a task that the child does and then ends. `flags` are those of clone(2) and may hold
 * CLONE_FILES; no memory is shared. Waits for the child's end. 0, or the task's negative errno with
 * its reason, -ETIMEDOUT, or -ECHILD when the child died. */
int child_work(child_task *task, void *argument, int flags, int limit_ms, struct failure *why);

/* Waits for the child's end, `limit_ms` at most, and reaps it. False when it did not end: it is
 * still there. `status` as waitpid(2) gives it; may be NULL. */
bool child_wait(pid_t child, int limit_ms, int *status);

/* Kills the child and reaps it. A child that the kernel cannot end, because it waits for a file
 * server that is gone, is left to whoever reaps after a second. */
void child_end(pid_t child);

#endif
