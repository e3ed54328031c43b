/* Shared memory between the sandbox's PID 1, which writes, and the process outside, which reads
 * after its end. */
#include "init/wsl/wsl_progress.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

static struct wsl_progress *progress;

int wsl_progress_open(struct failure *why)
{
    void *memory =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return failure_errno(why, errno, "shared memory");
    progress = memory;
    return 0;
}

const struct wsl_progress *wsl_progress_read(void)
{
    return progress;
}

void wsl_progress_stage(unsigned stage)
{
    if (progress)
        progress->stages = stage + 1;
}

void wsl_progress_group(const char *id)
{
    if (progress)
        snprintf(progress->group, sizeof(progress->group), "%s", id);
}

void wsl_progress_end(void)
{
    if (progress)
        progress->ended = 1;
}
