/* Settings of tools that cannot be set by environment variables.
 *
 * cargo's source replacement: cargo reads .cargo/config.toml of the working directory and of all
 * directories above it. git's url.insteadOf maps the addresses that people write, and those in
 * submodules and manifests, to the broker's rule. apt's folders belong to root, which the account
 * is not, so apt gets others.
 */
#include "init/server/tool_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/machine/account.h"
#include "init/server/upstream_url.h"

#define TOOL_FILE_MAX 2048
#define CARGO_FILE "/.cargo/config.toml"
#define GIT_FILE "/etc/gitconfig"
#define APT_SOURCES_FILE APT_FOLDER "/sources.list"
#define OS_RELEASE_FILE "/etc/os-release"
#define OS_RELEASE_MAX 4096

/* git-lfs retries every failure eight times, 36 s in all, also a refusal of the broker. */
#define LFS_SETTINGS "[lfs \"transfer\"]\n\tmaxretries = 3\n"

struct text {
    char *out;
    size_t size, length; /* length may exceed size; checked at the end */
};

static void add(struct text *text, const char *part)
{
    size_t length = strlen(part);
    if (text->length + length < text->size)
        memcpy(text->out + text->length, part, length + 1);
    text->length += length;
}

static int finish(const struct text *text)
{
    return text->length < text->size ? (int)text->length : -ENOSPC;
}

int tool_files_cargo(char *out, size_t size, const struct boot_config *config)
{
    struct text text = {.out = out, .size = size};
    char url[UPSTREAM_URL_MAX];

    upstream_url(url, config, "crates");
    add(&text, "# the public registry, through the sandbox's broker\n"
               "[source.crates-io]\n"
               "replace-with = \"codev\"\n"
               "[source.codev]\n"
               "registry = \"sparse+");
    add(&text, url);
    add(&text, "/\"\n");
    return finish(&text);
}

/* The rules for hosts of repositories. */
static const struct {
    const char *rule, *host;
} git_hosts[] = {{"github", "github.com"}, {"gitlab", "gitlab.com"}};

static const struct {
    const char *before, *after; /* around the host */
} git_addresses[] = {{"https://", "/"}, {"git@", ":"}, {"ssh://git@", "/"}, {"git://", "/"}};

int tool_files_git(char *out, size_t size, const struct boot_config *config)
{
    struct text text = {.out = out, .size = size};
    char url[UPSTREAM_URL_MAX];

    add(&text, "");
    for (size_t i = 0; i < ARRAY_LENGTH(git_hosts); i++) {
        if (!upstream_is_allowed(config, git_hosts[i].rule))
            continue;
        if (text.length == 0)
            add(&text, LFS_SETTINGS);
        upstream_url(url, config, git_hosts[i].rule);
        add(&text, "[url \"");
        add(&text, url);
        add(&text, "/\"]\n");
        for (size_t form = 0; form < ARRAY_LENGTH(git_addresses); form++) {
            add(&text, "\tinsteadOf = ");
            add(&text, git_addresses[form].before);
            add(&text, git_hosts[i].host);
            add(&text, git_addresses[form].after);
            add(&text, "\n");
        }
    }
    return finish(&text);
}

/* apt makes missing directories below Dir::State and Dir::Cache itself, if those two exist. */
int tool_files_apt(char *out, size_t size, const char *home)
{
    struct text text = {.out = out, .size = size};

    add(&text, "Dir::State \"");
    add(&text, home);
    add(&text, "\";\n"
               "Dir::State::Lists \".cache/apt/lists\";\n"
               "Dir::State::extended_states \".cache/apt/extended_states\";\n"
               "Dir::State::status \"/var/lib/dpkg/status\";\n"
               "Dir::Cache \"");
    add(&text, home);
    add(&text, "\";\n"
               "Dir::Cache::Archives \".cache/apt/archives\";\n"
               "Dir::Cache::pkgcache \".cache/apt/pkgcache.bin\";\n"
               "Dir::Cache::srcpkgcache \".cache/apt/srcpkgcache.bin\";\n"
               "Dir::Log \"");
    add(&text, home);
    add(&text, "/.cache/apt\";\n"
               "Dir::Etc::SourceParts \"-\";\n"
               "Dir::Etc::SourceList \"" APT_SOURCES_FILE "\";\n"
               "Acquire::Languages \"none\";\n"
               "APT::Sandbox::User \"\";\n");
    return finish(&text);
}

static void add_source(struct text *text, const struct boot_config *config, const char *rule,
                       const char *codename, const char *suffix)
{
    char url[UPSTREAM_URL_MAX];

    if (!upstream_is_allowed(config, rule))
        return;
    upstream_url(url, config, rule);
    add(text, "deb ");
    add(text, url);
    add(text, " ");
    add(text, codename);
    add(text, suffix);
    add(text, " main\n");
}

int tool_files_apt_sources(char *out, size_t size, const struct boot_config *config,
                           const char *codename)
{
    struct text text = {.out = out, .size = size};

    add(&text, "");
    add_source(&text, config, "debian", codename, "");
    add_source(&text, config, "debian", codename, "-updates");
    add_source(&text, config, "debian-security", codename, "-security");
    return finish(&text);
}

void tool_files_codename(char out[CODENAME_MAX], const char *os_release)
{
    static const char key[] = "VERSION_CODENAME=";
    const char *line = os_release;

    out[0] = '\0';
    while (line && strncmp(line, key, strlen(key)) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return;
    line += strlen(key);
    size_t quote = *line == '"' || *line == '\'' ? 1 : 0;
    size_t length = strspn(line + quote, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (length >= CODENAME_MAX || (quote != 0 && line[quote + length] != line[0]))
        return;
    memcpy(out, line + quote, length);
    out[length] = '\0';
}

/* --- writing --- */

static int make_folder(const char *path, struct failure *why)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return failure_errno(why, errno, "make %s", path);
    return 0;
}

/* `how` is O_TRUNC for a file of ours, O_APPEND for a file that has other contents. */
static int write_text(const char *path, int how, const char *text, int length, struct failure *why)
{
    if (length > 0)
        length = io_write_file(AT_FDCWD, path, O_WRONLY | O_CREAT | O_NOFOLLOW | how, 0644, text);
    return length < 0 ? failure_errno(why, -length, "write %s", path) : 0;
}

/* Without a codename in os-release the image's own list stays. */
static int write_apt_sources(const struct boot_config *config, char *text, struct failure *why)
{
    char os_release[OS_RELEASE_MAX], codename[CODENAME_MAX];

    if (io_read_file(AT_FDCWD, OS_RELEASE_FILE, 0, os_release, sizeof(os_release)) < 0)
        return 0;
    tool_files_codename(codename, os_release);
    if (codename[0] == '\0')
        return 0;
    return write_text(APT_SOURCES_FILE, O_TRUNC, text,
                      tool_files_apt_sources(text, TOOL_FILE_MAX, config, codename), why);
}

static int write_apt(const struct boot_config *config, char *text, struct failure *why)
{
    struct account account;

    if (!upstream_is_allowed(config, "debian"))
        return 0;
    int result = account_find(config->account_name, &account, why);
    if (result == 0)
        result = make_folder(APT_FOLDER, why);
    if (result == 0)
        result = write_text(APT_CONFIG_FILE, O_TRUNC, text,
                            tool_files_apt(text, TOOL_FILE_MAX, account.home), why);
    return result == 0 ? write_apt_sources(config, text, why) : result;
}

int tool_files_write(const struct boot_config *config, struct failure *why)
{
    char text[TOOL_FILE_MAX];
    int result =
        write_text(GIT_FILE, O_APPEND, text, tool_files_git(text, sizeof(text), config), why);

    if (result == 0 && upstream_is_allowed(config, "crates")) {
        result = make_folder("/.cargo", why);
        if (result == 0)
            result = write_text(CARGO_FILE, O_TRUNC, text,
                                tool_files_cargo(text, sizeof(text), config), why);
    }
    return result == 0 ? write_apt(config, text, why) : result;
}
