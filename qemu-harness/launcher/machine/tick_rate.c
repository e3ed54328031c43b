/* Samples the counter and the clock together. The clock is read before and after the counter: the
 * try with the shortest time between the two was interrupted least. */
#include "qemu-harness/launcher/machine/tick_rate_internal.h"

#include <stdbool.h>

#include "common/os/io.h"

#define TRIES 8
#define APART_MIN_NS 1000000 /* a sample has an error of some hundred nanoseconds */

#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>

/* CPUID: bit 8 of EDX says that the counter never changes its rate, nor stops. */
#define LEAF_POWER 0x80000007u
#define INVARIANT (1u << 8)

static bool counter_is_constant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(LEAF_POWER, &a, &b, &c, &d) && d & INVARIANT;
}

static uint64_t read_ticks(void)
{
    return __rdtsc();
}
#else
static bool counter_is_constant(void)
{
    return false;
}

static uint64_t read_ticks(void)
{
    return 0;
}
#endif

struct tick_sample tick_sample_take(void)
{
    struct tick_sample best = {0};
    int64_t best_took = INT64_MAX;
    if (!counter_is_constant())
        return best;
    for (int i = 0; i < TRIES; i++) {
        int64_t before = io_monotonic_ns();
        uint64_t ticks = read_ticks();
        int64_t took = io_monotonic_ns() - before;
        if (took >= best_took)
            continue;
        best = (struct tick_sample){.ticks = ticks, .ns = before + took / 2};
        best_took = took;
    }
    return best;
}

uint32_t tick_rate_khz(const struct tick_sample *first, const struct tick_sample *second)
{
    int64_t apart = second->ns - first->ns;
    if (!first->ticks || second->ticks <= first->ticks || apart < APART_MIN_NS)
        return 0;
    double khz = (double)(second->ticks - first->ticks) * 1e6 / (double)apart;
    return khz < UINT32_MAX ? (uint32_t)khz : 0;
}
