/* The boot configuration that this sandbox's init gets (design, section 3), and --config.
 *
 * --config FILE is a JSON object that is merged into ours member by member (json_merge.h): server.env,
 * auto_accept, limits, user_namespaces. init validates the result. */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_BOOT_CONFIG_H
#define QEMU_HARNESS_LAUNCHER_GUEST_BOOT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "common/os/secret.h"
#include "common/wire/protocol.h"
#include "qemu-harness/launcher/folders/file_server.h"
#include "qemu-harness/launcher/guest/control.h"
#include "qemu-harness/launcher/run/broker.h"
#include "qemu-harness/launcher/run/wsl.h"

#define BOOT_CONFIG_SIZE CONTROL_LINE_MAX /* with its newline it is one line of the channel */
#define BOOT_CONFIG_MAX (BOOT_CONFIG_SIZE - 2 - CONTROL_TIME_MAX) /* before unix_ns is added */

enum boot_stdio { BOOT_PIPE, BOOT_TTY };

struct boot_config_parts {
    const struct options *options;
    const struct account *account;
    const struct mount_table *mounts;
    const struct file_server *file_server;
    const struct broker *broker;
    const struct wsl *wsl;     /* NULL in a machine */
    const char *way_in_secret; /* "" without --server-port */
    const char *id;
    enum boot_stdio stdio;
    unsigned rows, columns;
    const char *overlay; /* the text of --config, checked by boot_config_read; NULL without one */
    size_t overlay_length;
};

/* Reads and checks the file: an object, strict JSON, no name twice. *text is the caller's to free. The
 * length, or a negative errno with FILE:LINE:COLUMN. */
long boot_config_read(const char *path, char **text, struct failure *why);

/* Writes the configuration into `out` (BOOT_CONFIG_SIZE). Its length without a newline, or a negative
 * errno. */
int boot_config_write(char *out, const struct boot_config_parts *parts, struct failure *why);

#endif
