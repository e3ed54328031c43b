/* The broker's end of the proxy resolver (pac_resolver.h): starts, asks, hears and stops it.
 *
 * No function waits. The resolver is started before the broker reads its token. One that has died
 * is replaced later: it is executed as a new program, so nothing of the broker's memory is passed
 * to it.
 */
#ifndef HOST_BROKER_PROXY_RESOLVER_H
#define HOST_BROKER_PROXY_RESOLVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/os/failure.h"
#include "host-broker/proxy/pac_resolver.h"

#define RESOLVER_CA_FILES_MAX 8

struct resolver {
    pid_t pid;
    int fd; /* -1: not running */
};

/* 0 or a negative errno with a reason. `ca_files` (at most RESOLVER_CA_FILES_MAX) are trusted for
 * the download of PAC scripts. */
int resolver_start(struct resolver *resolver, const char *const *ca_files, size_t count,
                   struct failure *why);

/* 0, or a negative errno (-EAGAIN: too many questions wait). */
int resolver_ask(struct resolver *resolver, const struct pac_question *question);

/* 1 and a reply, 0 when there is none yet, or a negative errno when the process has ended. The
 * reply is checked: its text ends with a NUL, and its verdict is within range. */
int resolver_hear(struct resolver *resolver, struct pac_reply *reply);

/* Kills the resolver and its children, and reaps it. */
void resolver_stop(struct resolver *resolver);

#endif
