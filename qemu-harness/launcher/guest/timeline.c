/* Collects the stages and draws them. */
#include "qemu-harness/launcher/guest/timeline.h"

#include <string.h>

#include "common/text/escape.h"

#define BAR_WIDTH 48

void timeline_add(struct timeline *timeline, const char *name, double ms)
{
    if (timeline->count == TIMELINE_ROWS_MAX)
        return;
    struct timeline_row *row = &timeline->rows[timeline->count++];
    escape_text(row->name, sizeof(row->name), name, strlen(name), 0);
    row->ms = ms;
}

void timeline_draw(const struct timeline *timeline, FILE *out, const char *line_end)
{
    double total = 0, before = 0;
    for (unsigned i = 0; i < timeline->count; i++)
        total += timeline->rows[i].ms;
    if (total <= 0)
        return;
    for (unsigned i = 0; i < timeline->count; i++) {
        const struct timeline_row *row = &timeline->rows[i];
        char bar[BAR_WIDTH + 1];
        unsigned start = (unsigned)(before / total * BAR_WIDTH);
        unsigned end = (unsigned)((before + row->ms) / total * BAR_WIDTH + 0.5);
        for (unsigned column = 0; column < BAR_WIDTH; column++)
            bar[column] = column >= start && column < end ? '#' : ' ';
        if (start < BAR_WIDTH && end <= start)
            bar[start] = '|';
        bar[BAR_WIDTH] = '\0';
        fprintf(out, "  %-14s [%s] %8.1f ms%s", row->name, bar, row->ms, line_end);
        before += row->ms;
    }
    fprintf(out, "  %-14s  %*s  %8.1f ms%s", "together", BAR_WIDTH, "", total, line_end);
}
