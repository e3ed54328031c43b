/* Whether a name may stand among many twice, without comparing each with each: of every name a hash is kept as one bit.
 *
 * A name whose bit was clear is new. One whose bit was set may be, and has to be looked for; with a thousand names that is one in
 * thirty. So a list is checked in a time that grows with its length, in 2 KiB of the caller's and without sorting it.
 */
#ifndef COMMON_TEXT_NAME_FILTER_H
#define COMMON_TEXT_NAME_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#define NAME_FILTER_BITS 14 /* of a hash */
#define NAME_FILTER_SEED 2166136261u

struct name_filter {
    uint32_t words[(1u << NAME_FILTER_BITS) / 32]; /* begins as zeroes */
};

/* FNV-1a, 32 bits: the hash with one more character; the first time with NAME_FILTER_SEED. */
static inline uint32_t name_filter_hash(uint32_t hash, uint32_t character)
{
    return (hash ^ character) * 16777619u;
}

/* False when no name with this hash was there before. It is from now on. */
static inline bool name_filter_seen(struct name_filter *filter, uint32_t hash)
{
    /* the last characters have changed the lower bits only: Knuth's multiplication spreads them over the upper ones */
    uint32_t bit = hash * 2654435761u >> (32 - NAME_FILTER_BITS);
    bool seen = filter->words[bit / 32] >> (bit % 32) & 1;
    filter->words[bit / 32] |= 1u << (bit % 32);
    return seen;
}

#endif
