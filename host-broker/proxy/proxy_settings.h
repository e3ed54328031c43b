/* The proxy of an upstream, from the command line and the environment.
 *
 * Upstreams on loopback and those that NO_PROXY matches (no_proxy is read first) are always direct.
 * For the others --proxy decides. With `system` the environment is read: http_proxy or https_proxy
 * by the upstream's scheme, then all_proxy, each in lower case before upper case; an empty variable
 * counts as absent. A value may be pac+URL, as in libproxy. Without a variable the desktop's
 * settings decide. They, and PAC scripts, are left to the proxy resolver (pac_resolver.h).
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
    PROXY_ANSWER_BROKEN, /* the environment's value is no proxy, for the reason *broken */
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

/* Reads the environment by `get`, whose strings must stay valid. */
void proxy_settings_read(struct proxy_settings *settings, const struct proxy_options *options,
                         const char *(*get)(const char *name));

/* The choice for an upstream. Never NULL. */
const struct proxy_choice *proxy_settings_find(const struct proxy_settings *settings,
                                               const struct upstream_url *url);

/* True when some upstream could need the proxy resolver. */
bool proxy_settings_need_resolver(const struct proxy_settings *settings);

#endif
