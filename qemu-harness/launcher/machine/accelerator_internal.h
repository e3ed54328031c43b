/* KVM or TCG.
 *
 * KVM is used for a guest of the host's own architecture, when /dev/kvm opens and, on x86_64, the
 * processor shows vmx or svm: on some machines without these flags /dev/kvm exists and a stock
 * guest hangs on it.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_ACCELERATOR_INTERNAL_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_ACCELERATOR_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct accelerator {
    bool kvm;
    gid_t group; /* the group that may open /dev/kvm; (gid_t)-1 when none is needed */
};

void accelerator_choose(struct accelerator *accelerator, const char *guest_arch);

/* True when a flags line of /proc/cpuinfo holds the word vmx or svm. */
bool accelerator_cpu_has_virtualization(const char *cpuinfo, size_t length);

/* "x86_64", "aarch64": uname's machine. */
const char *accelerator_host_arch(void);

#endif
