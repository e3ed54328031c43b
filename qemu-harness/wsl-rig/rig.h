/* The guest side of the WSL rig: replaces WSL's /init and the services of Windows that it uses.
 *
 * One static program. The first argument, or the name it is called with, selects what it does, as
 * with WSL's /init:
 *
 *     rig channel            runs programs at the host's request (wsl.exe -d NAME --exec ...)
 *     rig stand-ins          replaces the services of Windows, and records each connection to them
 *     rig distribution NAME  clones the distribution's namespaces and becomes its PID 1
 *     rig processes          lists all processes, for tests that look from outside
 *     rig unrule PID         deletes a sandbox's firewall as its owner
 *     rig rules              sets the routing rules of mirrored networking
 *     mount.drvfs            mounts a Windows drive (called by mount -t drvfs in a distribution)
 *     /init                  is the interpreter of Windows executables (called by the kernel)
 *
 * When it cannot do something, it prints the reason on standard error and ends with status 1.
 */
#ifndef QEMU_HARNESS_WSL_RIG_RIG_H
#define QEMU_HARNESS_WSL_RIG_RIG_H

#include <sys/types.h>

#define RIG_SYSTEM "SYSTEM" /* the outer system, as `wsl --system` shows it */
#define RIG_DISTRIBUTIONS "/distributions"
#define RIG_RUN "/run/rig"           /* NAME.pid of each running distribution */
#define RIG_DRIVES "/run/rig/drives" /* lines LETTER CHANNELS MODE: tags LETTER0, LETTER1, ... */
#define RIG_LOG "/dev/ttyS1"         /* the record of the stand-ins, a file on the host */
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

/* Connects to Windows as WSL does, by vsock to CID 2. Returns the descriptor, or -1 with errno. */
int rig_dial_windows(unsigned port);

/* Moves the caller into the namespaces of a distribution, which is started if it does not run. The
 * PID namespace applies to the caller's next child. */
void rig_enter(const char *distribution);

#endif
