/* --timeline: how long the start took, stage by stage, drawn as bars on standard error. */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_TIMELINE_H
#define QEMU_HARNESS_LAUNCHER_GUEST_TIMELINE_H

#include <stdint.h>
#include <stdio.h>

#include "common/wire/protocol.h"

#define TIMELINE_ROWS_MAX 32 /* later stages are not drawn */
#define TIMELINE_NAME_MAX 32

struct timeline_row {
    char name[TIMELINE_NAME_MAX]; /* escaped */
    double ms;
};

struct timeline {
    struct timeline_row rows[TIMELINE_ROWS_MAX];
    unsigned count;
};

/* Appends a step; the name may be hostile. */
void timeline_add(struct timeline *timeline, const char *name, double ms);

/* Each bar begins where the one before ended. */
void timeline_draw(const struct timeline *timeline, FILE *out, const char *line_end);

#endif
