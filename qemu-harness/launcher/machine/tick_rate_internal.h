/* How fast the processor's time stamp counter runs, for a guest whose processor is emulated.
 *
 * Such a guest reads the host's own counter, and its kernel measures the rate against an emulated
 * timer. On a busy host QEMU is not scheduled for a while during the measurement: the rate comes
 * out too low, and the guest's clock runs too fast (seen: 18.5 s in 8.4 s). The launcher measures
 * the rate on the host instead, by two samples with the start's work between them.
 *
 * The corrections of the guest's clock do not replace this: they set the time of day. Timeouts in
 * the guest follow its monotonic clock, which nothing corrects, and would expire after half their
 * time.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_TICK_RATE_INTERNAL_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_TICK_RATE_INTERNAL_H

#include <stdint.h>

struct tick_sample {
    uint64_t ticks; /* 0: there is no counter of a constant rate */
    int64_t ns;     /* CLOCK_MONOTONIC */
};

struct tick_sample tick_sample_take(void);

/* The rate between the two samples in kHz, or 0 when it is not known: no such counter, or the
 * samples are less than a millisecond apart. */
uint32_t tick_rate_khz(const struct tick_sample *first, const struct tick_sample *second);

#endif
