/* Stages `clock` and `hostname`: what belongs to the machine rather than the account. */
#ifndef INIT_MACHINE_MACHINE_H
#define INIT_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/os/failure.h"

#define HOSTNAME_MAX 64 /* bytes; the kernel's limit */

/* Sets CLOCK_REALTIME when it is off by more than 100 ms; *changed tells. unix_ns <= 0 does
 * nothing. */
int clock_set(int64_t unix_ns, bool *changed, struct failure *why);

/* Makes the wanted name a valid hostname (RFC 1123 labels, at most 64 bytes; "codev" when nothing
 * is left), sets it and writes /etc/hostname and /etc/hosts. Never fatal: 1 with a text in `why`
 * when it had to be changed or could not be set, else 0. */
int hostname_set(const char *wanted, struct failure *why);

/* The pure part: writes a valid name of at most 64 bytes. True when it equals `wanted`. */
bool hostname_make_valid(char out[HOSTNAME_MAX + 1], const char *wanted);

#endif
