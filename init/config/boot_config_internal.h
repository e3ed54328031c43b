/* Inside of the boot configuration's parser: readers and checks that boot_config.c's tables use. */
#ifndef INIT_CONFIG_BOOT_CONFIG_INTERNAL_H
#define INIT_CONFIG_BOOT_CONFIG_INTERNAL_H

#include "common/text/name_filter.h"
#include "init/config/boot_config.h"
#include "init/config/schema.h"

#define BOOT_ID_NUMBER_MAX 4294967294u /* (uid_t)-1 is no id */

int boot_read_protocol(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field);
int boot_read_relay(struct schema_parse *parse, uint32_t index, void *target,
                    const struct schema_field *field);
int boot_read_way_in(struct schema_parse *parse, uint32_t index, void *target,
                     const struct schema_field *field);

/* Absolute and normal: one slash between names, no ".", no "..", none at the end. */
int boot_check_path(struct schema_parse *parse, const char *path);

/* The mount number `index`, against the rules for its type and target and against those before it. */
int boot_check_mount(struct schema_parse *parse, const struct boot_config *config, unsigned index);

/* The last entry of config->egress: [a-z0-9][a-z0-9._-]{0,63}, and not there before. `seen` is kept from one to the next. */
int boot_check_rule_name(struct schema_parse *parse, const struct boot_config *config,
                         struct name_filter *seen);

/* What fits the place: a virtual machine has no network, so both are vsock; WSL has TCP, and the broker's key is pinned. */
int boot_check_transport(struct schema_parse *parse, const struct endpoint *endpoint);
int boot_check_pin(struct schema_parse *parse, const struct boot_relay *relay);
int boot_check_way_in(struct schema_parse *parse, const struct endpoint *endpoint);

/* What several values say together. */
int boot_check_whole(struct schema_parse *parse, struct boot_config *config);

#endif
