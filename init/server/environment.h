/* The environment of the server, its permissions, and /run/codev/sandbox.json. */
#ifndef INIT_SERVER_ENVIRONMENT_H
#define INIT_SERVER_ENVIRONMENT_H

#include "init/config/boot_config.h"
#include "init/machine/account.h"

/* Whether the server asks before it acts: the setting of the longest directory that contains cwd,
 * and the project's own codev.json; the stricter one wins (doc/design.md, "Permissions and
 * environment"). */
struct permissions {
    bool auto_accept;
    char permission
        [4096]; /* the `permission` object's own text, compact, for CODEV_PERMISSION, or "" */
    char warning[256]; /* why a codev.json was not understood and prompts are on, or "" */
};

/* Reads codev.json in the root of the mount that contains cwd, in a child with the account's
 * rights, within 2 s. It must be a regular file (O_NOFOLLOW, O_NONBLOCK) of at most 64 KiB and
 * strict JSON. */
int permissions_decide(const struct boot_config *config, const struct account *account,
                       struct permissions *out, struct failure *why);

/* Builds the NULL-terminated environment in static storage: HOME USER LOGNAME SHELL PATH LANG TERM,
 * those of the gateway and of known rules (doc/rules.md), then the configured ones, which override
 * all but CODEV_SANDBOX, CODEV_AUTO_ACCEPT and CODEV_PERMISSION. -E2BIG when it does not fit. */
int environment_build(const struct boot_config *config, const struct account *account,
                      const struct permissions *permissions, char ***out, struct failure *why);

/* Writes /run/codev/sandbox.json (root, mode 0644) with id, mounts, egress names and URLs, and
 * permissions; and the files of tools that have no variable (tool_files.h). */
int sandbox_file_write(const struct boot_config *config, const struct permissions *permissions,
                       struct failure *why);

/* The pure part: its text, with a newline and a NUL. The length, or -ENOSPC. */
int sandbox_file_text(char *out, size_t size, const struct boot_config *config,
                      const struct permissions *permissions);

#endif
