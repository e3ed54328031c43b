/* The environment of the server, built from nothing.
 *
 * Entries are text of our own in one buffer, or pointers to the boot configuration's. A name that
 * comes again takes the place of the one before, so that the order of the parts below is their
 * rank: the account's, those of the tools for each allowed upstream, the configured ones; and last
 * what says that this is a sandbox and whether prompts are off, which nothing overrules
 * (`auto_accept` of the boot configuration is the place to say it).
 */
#include "init/server/environment.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "init/server/tool_files.h"
#include "init/server/upstream_url.h"

#define OWN_ENTRIES_MAX 48
#define OWN_TEXT_MAX 16384
#define ENVIRONMENT_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
#define PLACEHOLDER_KEY "codev-sandbox" /* SDKs refuse to start without one; the broker drops it */

struct environment {
    char *entries[OWN_ENTRIES_MAX + BOOT_ENVIRONMENT_MAX + 1];
    unsigned count;
    char text[OWN_TEXT_MAX];
    size_t used;
    bool overflow; /* sticky: checked once, at the end */
};

/* How a tool is told where its packages, or its model, come from. */
struct tool_variable {
    const char *rule, *name;
    const char *target; /* the rule whose URL stands between `before` and `after`; NULL: no URL */
    const char *before, *after;
};

static const struct tool_variable tool_variables[] = {
    {"gateway", "ANTHROPIC_BASE_URL", "gateway", "", ""},
    {"gateway", "ANTHROPIC_API_KEY", NULL, PLACEHOLDER_KEY, ""},
    {"gateway", "OPENAI_BASE_URL", "gateway", "", "/v1"},
    {"gateway", "OPENAI_API_KEY", NULL, PLACEHOLDER_KEY, ""},
    {"npm", "NPM_CONFIG_REGISTRY", "npm", "", "/"}, /* npm, pnpm, bun, yarn 1 */
    /* npm would write the addresses of the sandbox into package-lock.json, where nobody outside can
     * use them. */
    {"npm", "NPM_CONFIG_OMIT_LOCKFILE_REGISTRY_RESOLVED", NULL, "true", ""},
    {"npm", "NPM_CONFIG_UPDATE_NOTIFIER", NULL, "false", ""},
    {"npm", "COREPACK_NPM_REGISTRY", "npm", "", ""},
    {"npm", "COREPACK_ENABLE_DOWNLOAD_PROMPT", NULL, "0", ""},
    {"npm", "YARN_NPM_REGISTRY_SERVER", "npm", "", ""},
    {"npm", "YARN_UNSAFE_HTTP_WHITELIST", NULL, "127.0.0.1", ""}, /* berry wants https elsewhere */
    {"npm", "YARN_ENABLE_TELEMETRY", NULL, "0", ""},
    {"pypi", "PIP_INDEX_URL", "pypi", "", "/simple/"},
    {"pypi", "PIP_DISABLE_PIP_VERSION_CHECK", NULL, "1", ""},
    {"pypi", "UV_DEFAULT_INDEX", "pypi", "", "/simple/"},
    {"crates", "CARGO_REGISTRIES_CODEV_INDEX", "crates", "sparse+", "/"}, /* and tool_files.c */
    {"goproxy", "GOPROXY", "goproxy", "", ""}, /* alone: "direct" behind it could only fail */
    /* go's default database by its name, at an address that the broker knows, or knows to be
     * missing. */
    {"goproxy", "GOSUMDB", "sumdb", "sum.golang.org ", ""},
    {"debian", "APT_CONFIG", NULL, APT_CONFIG_FILE, ""}, /* tool_files.c */
};

/* Not to be overruled by the boot configuration's own `env`. */
static const char *const fixed_names[] = {"CODEV_SANDBOX", "CODEV_AUTO_ACCEPT", "CODEV_PERMISSION"};

static bool same_name(const char *entry, const char *other)
{
    size_t length = strcspn(entry, "=");
    return length == strcspn(other, "=") && memcmp(entry, other, length) == 0;
}

static void put_entry(struct environment *environment, char *entry)
{
    for (unsigned i = 0; i < environment->count; i++) {
        if (same_name(environment->entries[i], entry)) {
            environment->entries[i] = entry;
            return;
        }
    }
    if (environment->count + 1 >= ARRAY_LENGTH(environment->entries))
        environment->overflow = true;
    else
        environment->entries[environment->count++] = entry;
}

__attribute__((format(printf, 2, 3))) static void put(struct environment *environment,
                                                      const char *format, ...)
{
    char *place = environment->text + environment->used;
    size_t room = sizeof(environment->text) - environment->used;
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(place, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= room) {
        environment->overflow = true;
        return;
    }
    environment->used += (size_t)length + 1;
    put_entry(environment, place);
}

static void put_account(struct environment *environment, const struct boot_config *config,
                        const struct account *account)
{
    put(environment, "HOME=%s", account->home);
    put(environment, "USER=%s", account->name);
    put(environment, "LOGNAME=%s", account->name);
    put(environment, "SHELL=%s", account->shell[0] != '\0' ? account->shell : "/bin/sh");
    put(environment, "PATH=" ENVIRONMENT_PATH);
    put(environment, "LANG=C.UTF-8");
    /* Without a terminal of its own: what programs take for "no control sequences, please". */
    put(environment, "TERM=%s", config->server.stdio == STDIO_TTY ? "xterm-256color" : "dumb");
}

static void put_tools(struct environment *environment, const struct boot_config *config)
{
    char url[UPSTREAM_URL_MAX];

    for (size_t i = 0; i < ARRAY_LENGTH(tool_variables); i++) {
        const struct tool_variable *variable = &tool_variables[i];
        if (!upstream_is_allowed(config, variable->rule))
            continue;
        url[0] = '\0';
        if (variable->target)
            upstream_url(url, config, variable->target);
        put(environment, "%s=%s%s%s", variable->name, variable->before, url, variable->after);
    }
}

static bool is_fixed(const char *entry)
{
    for (size_t i = 0; i < ARRAY_LENGTH(fixed_names); i++) {
        if (same_name(fixed_names[i], entry))
            return true;
    }
    return false;
}

static void put_configured(struct environment *environment, const struct boot_config *config)
{
    for (char **entry = config->server.env; entry && *entry; entry++) {
        if (!is_fixed(*entry))
            put_entry(environment, *entry);
    }
}

int environment_build(const struct boot_config *config, const struct account *account,
                      const struct permissions *permissions, char ***out, struct failure *why)
{
    static struct environment environment;

    memset(&environment, 0, sizeof(environment));
    put_account(&environment, config, account);
    put_tools(&environment, config);
    put_configured(&environment, config);
    put(&environment, "CODEV_SANDBOX=1");
    if (permissions->auto_accept)
        put(&environment, "CODEV_AUTO_ACCEPT=1");
    if (permissions->permission[0] != '\0')
        put(&environment, "CODEV_PERMISSION=%s", permissions->permission);
    if (environment.overflow)
        return failure_set(why, E2BIG,
                           "the environment has more than %zu entries or %d bytes of its own",
                           ARRAY_LENGTH(environment.entries) - 1, OWN_TEXT_MAX);
    environment.entries[environment.count] = NULL;
    *out = environment.entries;
    return 0;
}
