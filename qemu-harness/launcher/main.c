/* codev-sandbox: runs a command in a micro-VM. It is the reference for what an app does on the
 * host.
 *
 * It starts the broker, the file servers, the vsock device and QEMU, speaks the control channel
 * with codev-init, connects the command to this program's terminal or pipes, and connects a
 * socket on the host to the command's port. Its exit status is the command's; 128+N when signal N
 * ended the command; 125 when the sandbox could not start or go on, with one line `codev-sandbox:
 * STEP: reason`. */
#include "qemu-harness/launcher/run/launcher.h"

int main(int argc, char **argv)
{
    return launcher_run(argc, argv, &qemu_machine);
}
