/* WSL: how far the sandbox's PID 1 has come, in memory that the process outside sees too.
 *
 * When PID 1 is killed it cannot report anything; the process outside then reports the failure from
 * what is noted here.
 */
#ifndef INIT_WSL_WSL_PROGRESS_H
#define INIT_WSL_WSL_PROGRESS_H

#include <stdint.h>

#include "common/os/failure.h"
#include "init/config/boot_config.h"

struct wsl_progress {
    volatile uint32_t stages;    /* finished so far, the ones that do not exist in WSL included */
    volatile uint32_t ended;     /* the last event was queued: nothing more is to be reported */
    char group[BOOT_ID_MAX + 1]; /* the cgroup to remove at the end, or "" */
};

/* Maps the memory, before the fork that makes PID 1. 0 or a negative errno. */
int wsl_progress_open(struct failure *why);

/* What was noted; NULL before wsl_progress_open. */
const struct wsl_progress *wsl_progress_read(void);

/* Notes of PID 1. In a machine, where nothing is mapped, they do nothing. */
void wsl_progress_stage(unsigned stage);
void wsl_progress_group(const char *id);
void wsl_progress_end(void);

#endif
