/* The events that are sent to the host (doc/control-channel.md), one function each. All return 0,
 * or -ENOBUFS when the queue is full. */
#ifndef INIT_HOST_EVENTS_H
#define INIT_HOST_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "init/config/boot_config.h"
#include "init/host/control.h"

#define CHECKS_MAX 32

/* The result of one check of the self-test. */
struct check_result {
    char name[40]; /* "no-network-device" */
    bool ok;
    char detail[120]; /* what was tried and what the kernel answered */
};

struct check_report {
    unsigned count;
    struct check_result checks[CHECKS_MAX];
};

int event_hello(struct control *control);
int event_stage(struct control *control, const char *stage, int64_t nanoseconds);
int event_ready(struct control *control, int64_t boot_ns, const struct boot_way_in *way_in,
                const struct check_report *report);
int event_failed(struct control *control, const char *stage, const char *error);
int event_warning(struct control *control,
                  const char *text); /* dropped first when the queue fills up */
int event_firewall(struct control *control, const char *state);
int event_dropped(struct control *control, int64_t lines);
int event_input_credit(struct control *control, int64_t bytes);
int event_time(struct control *control, int64_t number);  /* asks for the host's time */
int event_exit(struct control *control, int wait_status); /* as waitpid(2) returns it */

#endif
