/* codev-sandbox-wsl, for tests: codev-sandbox with a distribution of the WSL rig as its machine.
 *
 * All options of codev-sandbox mean the same, but for --kernel, --qemu-arg and --file-server,
 * which are refused. Its own are read first:
 *
 *     --wsl-network nat|mirrored    which of WSL's networks a rig of our own has (nat)
 *     --wsl-rig DIR                 a rig that `codev-rig start DIR` has started
 *     --wsl-distribution NAME       the distribution (codev), imported when it is missing
 */
#include <stdio.h>

#include "qemu-harness/launcher/run/launcher.h"
#include "qemu-harness/wsl-rig/launcher/wsl_machine.h"

#define USAGE_STATUS 125 /* as codev-sandbox */

int main(int argc, char **argv)
{
    struct failure why;
    if (wsl_options_take(&argc, argv, &why)) {
        fprintf(stderr, "codev-sandbox: usage: %s\n", why.text);
        return USAGE_STATUS;
    }
    return launcher_run(argc, argv, &wsl_machine);
}
