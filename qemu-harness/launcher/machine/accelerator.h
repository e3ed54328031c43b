/* KVM or TCG.
 *
 * KVM is used only where the processor itself shows vmx or svm (or the host is a 64-bit ARM with a
 * hypervisor mode, where /dev/kvm exists only then) and /dev/kvm opens: a bare /dev/kvm is no proof; on
 * some machines a stock guest hangs on it. And only for a guest of the host's own architecture.
 */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_ACCELERATOR_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_ACCELERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct accelerator {
    bool kvm;
    gid_t
        group; /* that may open /dev/kvm, for a QEMU with other ids; (gid_t)-1 when none is needed */
};

void accelerator_choose(struct accelerator *accelerator, const char *guest_arch);

/* True when a flags line of /proc/cpuinfo holds vmx or svm as a word. */
bool accelerator_cpu_has_virtualization(const char *cpuinfo, size_t length);

/* "x86_64", "aarch64": uname's machine. */
const char *accelerator_host_arch(void);

#endif
