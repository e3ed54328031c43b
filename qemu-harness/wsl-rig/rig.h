/* The guest side of the WSL rig: what stands in for WSL's own /init and for Windows behind it.
 *
 * One static program, chosen by its first argument or by the name it is called with, as WSL's /init
 * is:
 *
 *     rig channel           the executions that the host asks for (wsl.exe -d NAME -u USER --exec
 * ...) rig stand-ins         what listens for a guest that reaches Windows, and writes down each
 * that does rig distribution NAME clones the distribution's namespaces and becomes its PID 1 rig
 * processes         what runs, for a test that looks from outside rig unrule PID        deletes a
 * sandbox's firewall as its owner rig rules             the routing rules of mirrored networking
 *     mount.drvfs           a Windows drive (called by mount -t drvfs in a distribution)
 *     /init                 the interpreter of Windows executables (called by the kernel)
 *
 * It is a test rig: what it cannot do it says on standard error and ends with 1. */
#ifndef QEMU_HARNESS_WSL_RIG_RIG_H
#define QEMU_HARNESS_WSL_RIG_RIG_H

#include <sys/types.h>

#define RIG_SYSTEM "SYSTEM" /* the outer system, as `wsl --system` shows it */
#define RIG_DISTRIBUTIONS "/distributions"
#define RIG_RUN "/run/rig"           /* NAME.pid of each running distribution */
#define RIG_DRIVES "/run/rig/drives" /* lines LETTER CHANNELS MODE: tags LETTER0, LETTER1, ... */
#define RIG_LOG "/dev/ttyS1"         /* the stand-ins' record, a file on the host */
#define RIG_WSL "/run/WSL"           /* the interop sockets, seen by every distribution */
#define RIG_DRVFS_PORT 50002

int rig_channel(int argc, char **argv);
int rig_stand_ins(int argc, char **argv);
int rig_distribution(int argc, char **argv);
int rig_processes(int argc, char **argv);
int rig_unrule(int argc, char **argv);
int rig_rules(int argc, char **argv);
int rig_mount_drvfs(int argc, char **argv);
int rig_windows_executable(int argc, char **argv);

/* Prints what was being done and why it failed, and ends with status 1. */
void rig_die(const char *what) __attribute__((noreturn));

/* A connection to Windows as WSL makes it: vsock, CID 2. The descriptor or -1 with errno. */
int rig_dial_windows(unsigned port);

/* Opens the namespaces of a running distribution, starting it when it does not run; the caller is
 * in them then, but for the PID namespace, which its next child is in. */
void rig_enter(const char *distribution);

#endif
