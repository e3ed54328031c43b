/* The proxy resolver: the process that asks the desktop for its proxy settings and runs PAC
 * scripts.
 *
 * A PAC script is JavaScript from the network, so it runs in another process: codev-broker is
 * executed once more, as `codev-broker pac-resolver [CA-FILE]...`, before the broker reads its
 * token. This process has a socket as standard input, /dev/null as the other two, no further
 * descriptor, and only chosen environment variables. It forks a worker for each question. A worker
 * that exceeds PAC_TIMEOUT_MS or PAC_MEMORY_MAX is killed, with all that it started. So scripts
 * cannot disturb each other, and nothing of a script stays after its answer.
 *
 * The socket (SOCK_SEQPACKET) carries whole messages: struct pac_question to the resolver, struct
 * pac_reply back. Every question is answered, in any order.
 */
#ifndef HOST_BROKER_PROXY_PAC_RESOLVER_H
#define HOST_BROKER_PROXY_PAC_RESOLVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-broker/proxy/proxy_list.h"

#define PAC_RESOLVER_ARGUMENT "pac-resolver"
#define PAC_TIMEOUT_MS 5000
#define PAC_MEMORY_MAX (192 * 1024 * 1024)

struct pac_question {
    uint32_t number;                       /* returned in the reply */
    char url[UPSTREAM_ORIGIN_MAX + 1];     /* scheme://host:port/, no more of a request */
    char script[PROXY_SCRIPT_URL_MAX + 1]; /* "": the desktop's settings decide */
};

enum pac_verdict {
    PAC_RESULT,      /* text: the script's result */
    PAC_PROXIES,     /* text: URLs of proxies from the settings, one a line */
    PAC_UNAVAILABLE, /* text: why the script could not be downloaded, parsed or run */
    PAC_FAILED,      /* text: which limit was exceeded, or that there is no interpreter */
    PAC_VERDICT_COUNT
};

struct pac_reply {
    uint32_t number, verdict;
    char text[PROXY_RESULT_MAX + 1];
};

/* The main function of the process, with the arguments of main(). It ends when the socket is
 * closed. */
int pac_resolver_main(int argc, char **argv);

#endif
