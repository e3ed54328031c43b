/* Kernel settings of a virtual machine. */
#ifndef INIT_SYSTEM_SYSCTL_H
#define INIT_SYSTEM_SYSCTL_H

/* Writes the settings. One that this kernel lacks or refuses is skipped: the sandbox depends on
 * none. Not for WSL, where all distributions share the kernel. */
void sysctl_apply(void);

#endif
