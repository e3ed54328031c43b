/* Frees a control channel, which codev-init itself never does. */
#ifndef TEST_HARNESS_CONTROL_CLOSE_H
#define TEST_HARNESS_CONTROL_CLOSE_H

#include "common/os/cleanup.h"
#include "common/os/memory.h"
#include "init/host/control.h"

static inline void control_close(struct control *control)
{
    fd_close(&control->fd);
    fd_close(&control->out_fd);
    memory_free(control->in.bytes, CONTROL_LINE_MAX);
    control->in.bytes = NULL;
}

#endif
