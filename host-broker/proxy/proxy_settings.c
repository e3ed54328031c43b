/* Reads --proxy, the proxy variables of the environment, and NO_PROXY. */
#include "host-broker/proxy/proxy_settings.h"

#include <errno.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "host-broker/proxy/no_proxy_internal.h"

#define SCRIPT_PREFIX "pac+"

/* The value of the first variable in `names` (ends with NULL) that is set and not empty, or
 * NULL. */
static const char *first_set(const char *const *names, const char *(*get)(const char *name),
                             const char **name)
{
    for (; *names; names++) {
        const char *value = get(*names);
        if (!value || *value == '\0')
            continue;
        if (name)
            *name = *names;
        return value;
    }
    return NULL;
}

static void read_environment(struct proxy_choice *choice, bool https,
                             const char *(*get)(const char *name))
{
    static const char *const for_http[] = {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY",
                                           NULL};
    static const char *const for_https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                                            NULL};
    const char *name = NULL, *value = first_set(https ? for_https : for_http, get, &name);
    choice->answer = PROXY_ANSWER_SYSTEM;
    if (!value)
        return;
    if (strncmp(value, SCRIPT_PREFIX, strlen(SCRIPT_PREFIX)) == 0) {
        choice->answer = PROXY_ANSWER_SCRIPT;
        choice->script = value + strlen(SCRIPT_PREFIX);
    } else if (proxy_list_add_url(&choice->list, value, &choice->broken) < 0) {
        choice->answer = PROXY_ANSWER_BROKEN;
        failure_prefix(&choice->broken, 0, "the environment variable %s", name);
    } else {
        choice->answer = PROXY_ANSWER_LIST;
    }
}

void proxy_settings_read(struct proxy_settings *settings, const struct proxy_options *options,
                         const char *(*get)(const char *name))
{
    static const char *const no_proxy[] = {"no_proxy", "NO_PROXY", NULL};
    *settings = (struct proxy_settings){.no_proxy = first_set(no_proxy, get, NULL)};
    for (int https = 0; https < 2; https++) {
        struct proxy_choice *choice = &settings->choices[https];
        switch (options->mode) {
        case PROXY_MODE_SYSTEM:
            read_environment(choice, https, get);
            break;
        case PROXY_MODE_NONE:
            choice->answer = PROXY_ANSWER_DIRECT;
            break;
        case PROXY_MODE_URL:
            choice->answer = PROXY_ANSWER_LIST;
            choice->list = options->list;
            break;
        case PROXY_MODE_SCRIPT:
            choice->answer = PROXY_ANSWER_SCRIPT;
            choice->script = options->script;
            break;
        case PROXY_MODE_COUNT:
            break;
        }
    }
}

const struct proxy_choice *proxy_settings_find(const struct proxy_settings *settings,
                                               const struct upstream_url *url)
{
    static const struct proxy_choice direct = {.answer = PROXY_ANSWER_DIRECT};
    if (upstream_url_is_loopback(url) || no_proxy_matches(settings->no_proxy, url))
        return &direct;
    return &settings->choices[url->https];
}

bool proxy_settings_need_resolver(const struct proxy_settings *settings)
{
    for (size_t i = 0; i < ARRAY_LENGTH(settings->choices); i++)
        if (settings->choices[i].answer == PROXY_ANSWER_SCRIPT ||
            settings->choices[i].answer == PROXY_ANSWER_SYSTEM)
            return true;
    return false;
}
