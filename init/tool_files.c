/* Settings of tools that no environment variable reaches: cargo's source replacement ("Environment: not supported"
 * says its reference). cargo reads .cargo/config.toml of the working directory and all directories above it.
 */
#include "init/tool_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/io.h"
#include "init/upstream_url.h"

#define CARGO_FILE "/.cargo/config.toml"

int tool_files_write(const struct boot_config *config, struct failure *why)
{
    char url[UPSTREAM_URL_MAX], text[512];

    if (!upstream_is_allowed(config, "crates"))
        return 0;
    upstream_url(url, config, "crates");
    snprintf(text, sizeof(text),
             "# crates.io through the sandbox's broker\n"
             "[source.crates-io]\n"
             "replace-with = \"codev\"\n"
             "[source.codev]\n"
             "registry = \"sparse+%s/\"\n",
             url);
    if (mkdir("/.cargo", 0755) < 0 && errno != EEXIST)
        return failure_errno(why, errno, "make /.cargo");
    int result =
        io_write_file(AT_FDCWD, CARGO_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644, text);
    return result < 0 ? failure_errno(why, -result, "write " CARGO_FILE) : 0;
}
