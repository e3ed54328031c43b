/* For each upstream the ways to it, as last found, and the proxies that did not answer.
 *
 * What command line and environment tell (proxy_settings.h) is there at once. Else the resolver's process
 * is asked, with scheme://host:port/ only, and the requests for that upstream wait for its answer, 5 s at
 * most. Answers stay PROXY_KEPT; so a script is fetched anew that often for each upstream that is used,
 * and a change of the desktop's settings is seen that late. SIGHUP, and a request for which every way
 * failed (the laptop may have moved), forget earlier.
 *
 * A script that cannot be had, or that fails, means a direct connection, as in browsers, and is told by
 * `unavailable`; with --pac-mandatory it is a failure. A script that runs out of time or memory is always
 * one. A proxy that did not answer is tried last for PROXY_BAD.
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
/* The resolver keeps its own time; this is for one that hangs itself. */
#define PROXY_RESOLVER_TIMEOUT (2 * PAC_TIMEOUT_MS * MILLISECONDS)
#define PROXY_UPSTREAMS_MAX (RULES_MAX + 1)

/* What was found for an upstream. */
struct proxy_way {
    struct proxy_list list; /* never empty */
    bool by_script;         /* chosen by a PAC script: it gets no password */
    bool unavailable;       /* direct because the script could not be had */
};

enum proxy_state {
    PROXY_UNKNOWN,
    PROXY_ASKED,   /* until the resolver answers, or the deadline */
    PROXY_KNOWN,   /* `way` holds until `until` */
    PROXY_REFUSED, /* `why` tells, until `until` */
    PROXY_STATE_COUNT
};

struct proxy_entry {
    enum proxy_state state;
    uint32_t number; /* of the question */
    bool outdated;   /* asked before SIGHUP: the answer serves those who wait for it, no longer */
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
    int64_t deadline; /* of the questions that are open, or NEVER */
    struct proxy_entry entries[PROXY_UPSTREAMS_MAX];
};

/* Reads the settings and starts the resolver if one could be needed. Before anything secret is read.
 * 0 or a negative errno. `options` and `ca_files` must stay. */
int proxy_table_open(struct proxy_table *table, const struct proxy_options *options,
                     const char *const *ca_files, size_t ca_file_count, struct failure *why);

/* From here on answers arrive as EVENT_RESOLVER. 0 or a negative errno. */
int proxy_table_watch(struct proxy_table *table, struct event_loop *loop);

/* Looks up an upstream by its place (0 the gateway, else the rule's number + 1). PROXY_KNOWN and *way,
 * PROXY_ASKED (proxy_table_hear will tell), or PROXY_REFUSED and *why. */
enum proxy_state proxy_table_find(struct proxy_table *table, size_t upstream,
                                  const struct upstream_url *url, struct proxy_way *way,
                                  struct failure *why);

/* EVENT_RESOLVER, or the deadline: the next upstream whose question is settled, or -1 when there is none.
 * *verdict and *text (which stays until the next call) are for whoever reports it. */
int proxy_table_hear(struct proxy_table *table, enum pac_verdict *verdict, const char **text);

/* A proxy of *way did not answer; it is tried last for a while. */
void proxy_table_note_bad(struct proxy_table *table, size_t upstream, const struct proxy *proxy);

/* Nothing of *way answered: asks anew next time. */
void proxy_table_forget(struct proxy_table *table, size_t upstream);

/* SIGHUP. */
void proxy_table_forget_all(struct proxy_table *table);

void proxy_table_close(struct proxy_table *table);

#endif
