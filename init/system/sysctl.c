/* Kernel settings of a virtual machine, as a table with reasons.
 *
 * These keep their defaults, since the coding agent's tools need them: kernel.yama.ptrace_scope
 * (gdb attaches to processes that it did not start), net.ipv4.ip_unprivileged_port_start,
 * user.max_user_namespaces (`user_namespaces` of the boot configuration decides, by seccomp).
 */
#include "init/system/sysctl.h"

#include <fcntl.h>
#include <stddef.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

static const struct {
    const char *path, *value;
} settings[] = {
    /* an attack on the kernel needs its log and addresses */
    {"/proc/sys/kernel/dmesg_restrict", "1"},
    {"/proc/sys/kernel/kptr_restrict", "2"},
    {"/proc/sys/kernel/perf_event_paranoid", "3"},
    /* seccomp refuses these calls; off for processes without the filter too */
    {"/proc/sys/kernel/unprivileged_bpf_disabled", "1"},
    {"/proc/sys/net/core/bpf_jit_harden", "2"},
    {"/proc/sys/kernel/io_uring_disabled", "2"},
    {"/proc/sys/vm/unprivileged_userfaultfd", "0"},
    {"/proc/sys/kernel/kexec_load_disabled", "1"},
    {"/proc/sys/kernel/modules_disabled", "1"},
    {"/proc/sys/kernel/sysrq", "0"},
    /* repeated faults of the kernel, which an attacker learns from, end the machine */
    {"/proc/sys/kernel/oops_limit", "100"},
    {"/proc/sys/kernel/warn_limit", "100"},
    /* no core handler: with `|` the account could start a program as root by a crash */
    {"/proc/sys/kernel/core_pattern", "core"},
    {"/proc/sys/fs/suid_dumpable", "0"},
    /* against races with links in /tmp */
    {"/proc/sys/fs/protected_hardlinks", "1"},
    {"/proc/sys/fs/protected_symlinks", "1"},
    {"/proc/sys/fs/protected_fifos", "2"},
    {"/proc/sys/fs/protected_regular", "2"},
};

void sysctl_apply(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(settings); i++)
        (void)io_write_file(AT_FDCWD, settings[i].path, O_WRONLY, 0, settings[i].value);
}
