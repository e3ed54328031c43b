/* The broker's end of the process that knows proxies (pac_resolver.h): started, asked, heard, ended.
 *
 * Nothing here waits. The process is started before the broker reads its token; if it has died it is
 * started anew, as a new program again: posix_spawn(3) shares no memory beyond the exec.
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

/* 0 or a negative errno with a reason. `ca_files` (at most RESOLVER_CA_FILES_MAX) are trusted for the
 * download of PAC scripts. */
int resolver_start(struct resolver *resolver, const char *const *ca_files, size_t count,
                   struct failure *why);

/* 0, or a negative errno (-EAGAIN: too many questions wait). */
int resolver_ask(struct resolver *resolver, const struct pac_question *question);

/* 1 and a reply, 0 when there is none yet, or a negative errno when the process has ended. The text is
 * NUL-terminated and the verdict within its range, whatever was sent. */
int resolver_hear(struct resolver *resolver, struct pac_reply *reply);

/* Kills it and what it started, and reaps it. */
void resolver_stop(struct resolver *resolver);

#endif
