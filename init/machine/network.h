/* Stage `network`: lo up, and proof that there is nothing else. */
#ifndef INIT_MACHINE_NETWORK_H
#define INIT_MACHINE_NETWORK_H

#include "common/os/failure.h"

/* Brings lo up (IPv4 and IPv6), adds `unreachable` default routes, and refuses to go on when any
 * other interface exists (a kernel's own fallback tunnel that is down and without address apart:
 * named list), or the kernel command line holds a transparent socket proxy (tsi_hijack). */
int network_prepare(struct failure *why);

/* The check alone, as any account may make it: for the self-test. -EPERM names what is there. */
int network_check_interfaces(struct failure *why);

#endif
