/* The boot configuration that the guest gets (doc/design.md, "Boot configuration"), and --config.
 *
 * --config FILE is a JSON object that is laid over ours member by member (json_overlay.h):
 * server.env, auto_accept, limits, user_namespaces. Its values are validated by codev-init.
 *
 *     boot_config_open     reads --config
 *     boot_config_write    writes the text, once
 *     boot_config_wipe     the text was sent: its secrets are wiped
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_BOOT_CONFIG_H
#define QEMU_HARNESS_LAUNCHER_GUEST_BOOT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "common/json/json.h"
#include "qemu-harness/launcher/broker/broker.h"
#include "qemu-harness/launcher/folders/identity.h"
#include "qemu-harness/launcher/folders/mount_check.h"
#include "qemu-harness/launcher/guest/control.h"
#include "qemu-harness/launcher/machine/guest_link.h"

#define BOOT_CONFIG_SIZE CONTROL_LINE_MAX /* with its newline it is one line of the channel */
#define BOOT_CONFIG_MAX (BOOT_CONFIG_SIZE - 2 - CONTROL_TIME_MAX) /* before unix_ns is added */

/* server.stdio: what descriptors 0 to 2 of the command are. */
enum boot_stdio { BOOT_PIPE, BOOT_TTY, BOOT_LOG, BOOT_STDIO_COUNT };

struct boot_config {
    char *overlay_text;                /* of --config; NULL without one */
    struct json_token *overlay_tokens; /* CONTROL_TOKENS_MAX */
    struct json overlay;
    char *text; /* BOOT_CONFIG_SIZE, NULL while there is none */
    size_t length;
    bool has_time;         /* --config sets unix_ns */
    enum boot_stdio stdio; /* as --config may have changed it */
};

struct boot_config_parts {
    const struct options *options;
    const struct account *account;
    const struct mount_table *mounts;
    const struct broker *broker;
    const struct guest_link *link;
    const char *way_in_secret; /* "" without --server-port */
    const char *id;
    enum boot_stdio stdio; /* PIPE or TTY */
    unsigned rows, columns;
};

/* Reads and checks --config (NULL: there is none): an object, strict JSON, no duplicate name. 0
 * or a negative errno with FILE:LINE:COLUMN. */
int boot_config_open(struct boot_config *config, const char *file, struct failure *why);

/* Writes the text, without a newline. 0 or a negative errno. */
int boot_config_write(struct boot_config *config, const struct boot_config_parts *parts,
                      struct failure *why);

void boot_config_wipe(struct boot_config *config);
void boot_config_close(struct boot_config *config);

#endif
