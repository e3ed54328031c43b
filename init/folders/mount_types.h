/* Makes mounts by their types. */
#ifndef INIT_FOLDERS_MOUNT_TYPES_H
#define INIT_FOLDERS_MOUNT_TYPES_H

#include "init/config/boot_config.h"
#include "init/machine/account.h"

/* A detached mount, nosuid and nodev, read-only where asked. Its descriptor, or a negative errno
 * with the file system's own reason. */
int mount_type_make(const struct boot_mount *mount, const struct account *account,
                    struct failure *why);

#endif
