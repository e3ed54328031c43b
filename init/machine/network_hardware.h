/* A machine's network hardware, with or without a driver. */
#ifndef INIT_MACHINE_NETWORK_HARDWARE_H
#define INIT_MACHINE_NETWORK_HARDWARE_H

#include "common/os/failure.h"

/* VM only. -EPERM names the first network controller under `sys` ("/sys"): a PCI function of class
 * 02, or a virtio device of type 1 (linux/virtio_ids.h), which covers virtio over MMIO too. 0 when
 * there is none, or another negative errno when sysfs cannot be read. */
int network_check_hardware(const char *sys, struct failure *why);

#endif
