/* Settings of tools that no environment variable reaches. */
#ifndef INIT_TOOL_FILES_H
#define INIT_TOOL_FILES_H

#include "init/boot_config.h"

/* With the rule `crates`: /.cargo/config.toml, which cargo reads for every project below / and which the project's
 * own and the account's settings overrule key by key. */
int tool_files_write(const struct boot_config *config, struct failure *why);

#endif
