/* How fast the processor's time stamp counter runs, for a guest whose processor is emulated.
 *
 * Such a guest reads this host's own counter, and its kernel would find its rate beside an emulated timer. On a busy host QEMU stands
 * still between the two readings: the rate comes out too low, and the guest's clock runs too fast (seen: 18.5 s in
 * 8.4 s). We know it better, from two samples with our work between them.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_TICK_RATE_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_TICK_RATE_H

#include <stdint.h>

struct tick_sample {
    uint64_t ticks; /* 0: there is no counter of a constant rate */
    int64_t ns;     /* CLOCK_MONOTONIC */
};

struct tick_sample tick_sample_take(void);

/* Thousands of ticks a second between the two, or 0 when that is not known: no such counter, or less than a millisecond. */
uint32_t tick_rate_khz(const struct tick_sample *first, const struct tick_sample *second);

#endif
