/* Kernel settings of a VM of our own. */
#ifndef INIT_SYSTEM_SYSCTL_H
#define INIT_SYSTEM_SYSCTL_H

/* Writes the table. A setting that this kernel lacks, or does not take, is passed over: none of
 * them is a wall by itself. Not for WSL, whose kernel is everybody's. */
void sysctl_apply(void);

#endif
