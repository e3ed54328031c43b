/* Whether an upstream is asked through a proxy, as far as the command line and the environment tell.
 *
 * In this order: an upstream on loopback is always direct; so is one that NO_PROXY (no_proxy first) means;
 * then --proxy. With `system`, the environment: http_proxy or https_proxy by the upstream's scheme, then
 * all_proxy, each in small letters before capitals, an empty one as if it were not there. A value may be
 * pac+URL, as libproxy has it. Where the environment says nothing, the desktop's settings are asked, which
 * only the resolver's process can (pac_resolver.h), as it is the one for PAC scripts.
 */
#ifndef HOST_BROKER_PROXY_PROXY_SETTINGS_H
#define HOST_BROKER_PROXY_PROXY_SETTINGS_H

#include "host-broker/proxy/proxy_list.h"

#define PROXY_AUTH_HOSTS_MAX 16

/* Where the proxies come from (--proxy). */
enum proxy_mode {
    PROXY_MODE_SYSTEM, /* the environment, then the desktop's settings */
    PROXY_MODE_NONE,
    PROXY_MODE_URL,    /* `list` */
    PROXY_MODE_SCRIPT, /* `script` */
    PROXY_MODE_COUNT
};

/* What the command line says about proxies. */
struct proxy_options {
    enum proxy_mode mode;
    struct proxy_list list; /* PROXY_MODE_URL */
    const char *script;     /* PROXY_MODE_SCRIPT: the PAC script's URL (http, https or file) */
    bool pac_mandatory;     /* --pac-mandatory: without the PAC script requests are refused */
    const char *auth_hosts[PROXY_AUTH_HOSTS_MAX]; /* --proxy-auth-host: these proxies get */
    size_t auth_host_count;                       /* Negotiate even if a script names them */
};

enum proxy_answer {
    PROXY_ANSWER_DIRECT,
    PROXY_ANSWER_LIST,   /* *list */
    PROXY_ANSWER_SCRIPT, /* the PAC script at *script */
    PROXY_ANSWER_SYSTEM, /* the desktop's settings */
    PROXY_ANSWER_BROKEN, /* the environment's value is no proxy: *broken tells */
    PROXY_ANSWER_COUNT
};

/* For upstreams of one scheme. */
struct proxy_choice {
    enum proxy_answer answer;
    struct proxy_list list;
    const char *script;
    struct failure broken;
};

struct proxy_settings {
    const char *no_proxy;           /* NULL: none */
    struct proxy_choice choices[2]; /* for http, for https */
};

/* Reads the environment through `get`, whose texts must stay. */
void proxy_settings_read(struct proxy_settings *settings, const struct proxy_options *options,
                         const char *(*get)(const char *name));

/* Looks up an upstream. Never returns NULL. */
const struct proxy_choice *proxy_settings_find(const struct proxy_settings *settings,
                                               const struct upstream_url *url);

/* True when some upstream could need the resolver's process. */
bool proxy_settings_need_resolver(const struct proxy_settings *settings);

#endif
