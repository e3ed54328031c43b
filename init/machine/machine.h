/* Stages `clock` and `hostname`: what belongs to the machine rather than the account. */
#ifndef INIT_MACHINE_MACHINE_H
#define INIT_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/os/failure.h"
#include "common/os/io.h"

#define HOSTNAME_MAX 64 /* bytes; the kernel's limit */

#define CLOCK_AHEAD_MAX_NS (100 * MILLISECONDS)

/* Sets CLOCK_REALTIME when it is behind the host's or more than CLOCK_AHEAD_MAX_NS ahead of it. A
 * guest that is behind takes the files that the host keeps for it for files of the future. The
 * host's time was unix_ns at some moment of the last age_max_ns nanoseconds; a clock that fits any
 * of these moments is left alone, so an old time cannot set a right clock back. unix_ns <= 0 does
 * nothing. */
int clock_set(int64_t unix_ns, int64_t age_max_ns, struct failure *why);

/* The pure part: the time to set, or 0 when a clock that shows clock_ns may be right. */
int64_t clock_choose(int64_t clock_ns, int64_t unix_ns, int64_t age_max_ns);

/* Makes the wanted name a valid hostname (RFC 1123 labels, at most 64 bytes; "codev" when nothing
 * is left), sets it and writes /etc/hostname and /etc/hosts. Never fatal: 1 with a text in `why`
 * when it had to be changed or could not be set, else 0. */
int hostname_set(const char *wanted, struct failure *why);

/* The pure part: writes a valid name of at most 64 bytes. True when it equals `wanted`. */
bool hostname_make_valid(char out[HOSTNAME_MAX + 1], const char *wanted);

#endif
