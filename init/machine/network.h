/* Stage `network`: lo and no other interface. */
#ifndef INIT_MACHINE_NETWORK_H
#define INIT_MACHINE_NETWORK_H

#include "common/os/failure.h"

/* Brings lo up (IPv4 and IPv6) and adds `unreachable` default routes. Fails when any other
 * interface exists (but for a listed fallback tunnel of the kernel that is down and has no
 * address), or when the kernel command line has a transparent socket proxy (tsi_hijack). */
int network_prepare(struct failure *why);

/* The check alone, which needs no rights. -EPERM names the interface. */
int network_check_interfaces(struct failure *why);

#endif
