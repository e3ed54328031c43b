/* The ways to each upstream as last found, and the proxies that did not answer.
 *
 * Ways that the command line or the environment states (proxy_settings.h) are known at once. For
 * others the proxy resolver is asked, with scheme://host:port/ only, and requests for that upstream
 * wait for the answer, at most 5 s. Answers are kept for PROXY_KEPT: a script is downloaded that
 * often for each upstream in use, and a change of the desktop's settings is seen after that time.
 * Answers are forgotten earlier on SIGHUP, and when no way worked for a request (a laptop may be in
 * another network now).
 *
 * When a script cannot be downloaded, or fails, the connection is direct, as in browsers, and
 * `unavailable` is set; with --pac-mandatory the request is refused. A script that exceeds its time
 * or memory always means that the request is refused. A proxy that did not answer is tried last for
 * PROXY_BAD.
 */
#ifndef HOST_BROKER_PROXY_PROXY_TABLE_H
#define HOST_BROKER_PROXY_PROXY_TABLE_H

#include "host-broker/base/event_loop.h"
#include "host-broker/proxy/proxy_settings.h"
#include "host-broker/proxy/resolver.h"
#include "host-broker/rules/rules.h"

#define PROXY_KEPT (300 * SECONDS)
#define PROXY_UNAVAILABLE_KEPT (60 * SECONDS)
#define PROXY_FAILED_KEPT (10 * SECONDS)
#define PROXY_BAD (300 * SECONDS)
/* The resolver limits its own time; this limit is for a resolver that hangs. */
#define PROXY_RESOLVER_TIMEOUT (2 * PAC_TIMEOUT_MS * MILLISECONDS)
#define PROXY_UPSTREAMS_MAX (RULES_MAX + 1)

/* What was found for an upstream. */
struct proxy_way {
    struct proxy_list list; /* never empty */
    bool by_script;         /* chosen by a PAC script: it gets no password */
    bool unavailable;       /* direct, because the script is unavailable */
};

enum proxy_state {
    PROXY_UNKNOWN,
    PROXY_ASKED,   /* until the resolver answers, or the deadline */
    PROXY_KNOWN,   /* `way` is valid until `until` */
    PROXY_REFUSED, /* `why` is the reason, until `until` */
    PROXY_STATE_COUNT
};

struct proxy_entry {
    enum proxy_state state;
    uint32_t number; /* of the question */
    bool outdated;   /* asked before SIGHUP: the answer is for waiting requests only */
    int64_t until;
    struct proxy_way way;
    struct failure why;
    int64_t bad_until[PROXY_LIST_MAX];
};

struct proxy_table {
    const struct proxy_options *options;
    const char *const *ca_files; /* for the resolver */
    size_t ca_file_count;
    struct proxy_settings settings;
    struct resolver resolver;
    struct event_loop *loop; /* NULL until proxy_table_watch */
    uint32_t next_number;
    int64_t deadline; /* the earliest of open questions, or NEVER */
    struct proxy_entry entries[PROXY_UPSTREAMS_MAX];
};

/* Reads the settings and starts the resolver if it could be needed. To be called before any secret
 * is read. `options` and `ca_files` must stay valid. 0 or a negative errno. */
int proxy_table_open(struct proxy_table *table, const struct proxy_options *options,
                     const char *const *ca_files, size_t ca_file_count, struct failure *why);

/* Answers arrive as EVENT_RESOLVER from now on. 0 or a negative errno. */
int proxy_table_watch(struct proxy_table *table, struct event_loop *loop);

/* Finds the ways to an upstream, by its place (0: the gateway, else the rule's number + 1):
 * PROXY_KNOWN and *way, PROXY_ASKED (proxy_table_hear will return the upstream), or PROXY_REFUSED
 * and *why. */
enum proxy_state proxy_table_find(struct proxy_table *table, size_t upstream,
                                  const struct upstream_url *url, struct proxy_way *way,
                                  struct failure *why);

/* After EVENT_RESOLVER or the deadline: the next upstream whose question is answered, or -1 when
 * there is none. *verdict and *text are for the log; *text is valid until the next call. */
int proxy_table_hear(struct proxy_table *table, enum pac_verdict *verdict, const char **text);

/* A proxy did not answer: it is tried last for a while. */
void proxy_table_note_bad(struct proxy_table *table, size_t upstream, const struct proxy *proxy);

/* No way of the upstream worked: the next request asks again. */
void proxy_table_forget(struct proxy_table *table, size_t upstream);

/* Forgets all answers (SIGHUP). */
void proxy_table_forget_all(struct proxy_table *table);

void proxy_table_close(struct proxy_table *table);

#endif
