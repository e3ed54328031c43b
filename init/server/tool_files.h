/* Settings of tools that cannot be set by environment variables. The functions for the texts are
 * pure: each writes its text with a NUL and returns the length, or -ENOSPC. */
#ifndef INIT_SERVER_TOOL_FILES_H
#define INIT_SERVER_TOOL_FILES_H

#include <stddef.h>

#include "init/config/boot_config.h"

#define CODENAME_MAX 64
#define APT_FOLDER "/run/codev/apt"
#define APT_CONFIG_FILE APT_FOLDER "/apt.conf"

/* Writes the files for the rules that the configuration allows:
 *   crates                    /.cargo/config.toml, which cargo reads for every project below /; the
 *                             settings of the project and the account override it key by key
 *   github, gitlab            /etc/gitconfig, which the account's and the repository's settings
 *                             override
 * debian, debian-security APT_CONFIG_FILE, which APT_CONFIG names, and sources.list beside it. */
int tool_files_write(const struct boot_config *config, struct failure *why);

int tool_files_cargo(char *out, size_t size, const struct boot_config *config);
int tool_files_git(char *out, size_t size, const struct boot_config *config);

/* apt.conf(5): all of apt's state below `home`, for an account that is not root. */
int tool_files_apt(char *out, size_t size, const char *home);

/* sources.list(5) for the Debian release of this codename. */
int tool_files_apt_sources(char *out, size_t size, const struct boot_config *config,
                           const char *codename);

/* The value of VERSION_CODENAME in os-release(5): letters, digits, hyphens; "" when there is none
 * such. */
void tool_files_codename(char out[CODENAME_MAX], const char *os_release);

#endif
