/* The process that asks the desktop for its proxy settings and runs PAC scripts.
 *
 * A PAC script is JavaScript from the network. It runs in a process of its own: codev-broker, executed
 * anew as `codev-broker pac-resolver [CA-FILE]...` before the broker reads its token, with a socket as
 * standard input, /dev/null as the other two, no further descriptor, and an environment of chosen
 * variables. That process only forks: each question is answered by a fork of it, which has
 * PAC_TIMEOUT_MS and PAC_MEMORY_MAX and is killed beyond, with all that it started. So one script's
 * trouble is never another's, and nothing of a script outlives its answer.
 *
 * Over the socket (SOCK_SEQPACKET) go whole messages, in both directions: struct pac_question, struct
 * pac_reply. Every question is answered; the order is free.
 */
#ifndef HOST_BROKER_PROXY_PAC_RESOLVER_H
#define HOST_BROKER_PROXY_PAC_RESOLVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-broker/proxy/proxy_list.h"

#define PAC_RESOLVER_ARGUMENT "pac-resolver"
#define PAC_TIMEOUT_MS 5000
#define PAC_FETCH_TIMEOUT_MS 3000 /* of these */
#define PAC_MEMORY_MAX (192 * 1024 * 1024)
#define PAC_WORKERS_MAX 16 /* at once; further questions wait in the socket */

struct pac_question {
    uint32_t number;                       /* comes back in the reply */
    char url[UPSTREAM_ORIGIN_MAX + 1];     /* scheme://host:port/, nothing else of a request */
    char script[PROXY_SCRIPT_URL_MAX + 1]; /* "": as the desktop is set */
};

enum pac_verdict {
    PAC_RESULT,      /* text: what the script returned */
    PAC_PROXIES,     /* text: URLs of proxies from the settings, one a line */
    PAC_UNAVAILABLE, /* text: why the script could not be fetched or parsed, or failed */
    PAC_FAILED,      /* text: no answer within the limits, or no interpreter */
    PAC_VERDICT_COUNT
};

struct pac_reply {
    uint32_t number, verdict;
    char text[PROXY_RESULT_MAX + 1];
};

/* The process's main(). `argv` as main() got it. Ends when the socket does. */
int pac_resolver_main(int argc, char **argv);

/* Answers one question, in a process of its own. */
void pac_worker_answer(const struct pac_question *question, char *const *ca_files,
                       struct pac_reply *reply);

/* Fetches a script: its length, or a negative errno and a reason. */
ssize_t pac_fetch(const char *url, char *const *ca_files, char *out, size_t size,
                  struct failure *why);

/* Seccomp filters, each for the rest of the process's life. 0 or a negative errno. */
int pac_filter_settings(void); /* no network */
int pac_filter_script(
    void); /* name resolution, memory and threads; nothing is started or written */

#endif
