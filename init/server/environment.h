/* The environment of the server, built from nothing, and what any process inside may know. */
#ifndef INIT_SERVER_ENVIRONMENT_H
#define INIT_SERVER_ENVIRONMENT_H

#include "init/config/boot_config.h"
#include "init/machine/account.h"

/* Decision about prompts: the toggle of the longest directory that contains cwd, then the project's
 * own codev.json (stricter wins; design, section 9). */
struct permissions {
    bool auto_accept;
    char permission
        [4096]; /* the `permission` object's own text, compact, for CODEV_PERMISSION, or "" */
    char warning[256]; /* why a codev.json was not understood and prompts are on, or "" */
};

/* Reads codev.json at the root of the mount that contains cwd, in a child that has dropped to the
 * account, within 2 s: O_NOFOLLOW and O_NONBLOCK, a regular file, at most 64 KiB, strict JSON. */
int permissions_decide(const struct boot_config *config, const struct account *account,
                       struct permissions *out, struct failure *why);

/* Builds the NULL-terminated environment in static storage: HOME USER LOGNAME SHELL PATH LANG TERM,
 * the sandbox's own (CODEV_*), those of the gateway and of known rules (doc/rules.md), then the
 * configured ones, which win except over CODEV_SANDBOX, CODEV_AUTO_ACCEPT and CODEV_PERMISSION.
 * -E2BIG when it does not fit. */
int environment_build(const struct boot_config *config, const struct account *account,
                      const struct permissions *permissions, char ***out, struct failure *why);

/* Writes /run/codev/sandbox.json (mode 0644, root): id, mounts, egress names and URLs, permissions;
 * and the files of tools that no variable reaches (tool_files.h). */
int sandbox_file_write(const struct boot_config *config, const struct permissions *permissions,
                       struct failure *why);

/* The pure part: its text, with a newline and a NUL. The length, or -ENOSPC. */
int sandbox_file_text(char *out, size_t size, const struct boot_config *config,
                      const struct permissions *permissions);

#endif
