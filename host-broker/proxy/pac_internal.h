/* The parts of the proxy resolver (pac_resolver.h): worker, download, system call filters. */
#ifndef HOST_BROKER_PROXY_PAC_INTERNAL_H
#define HOST_BROKER_PROXY_PAC_INTERNAL_H

#include <sys/types.h>

#include "common/os/failure.h"

struct pac_question;
struct pac_reply;

#define PAC_FETCH_TIMEOUT_MS 3000 /* of PAC_TIMEOUT_MS */
#define PAC_WORKERS_MAX 16        /* at once; further questions wait in the socket */

/* Answers one question. To be called in a worker, which ends afterwards. */
void pac_worker_answer(const struct pac_question *question, char *const *ca_files,
                       struct pac_reply *reply);

/* Downloads a script: its length, or a negative errno and a reason. */
ssize_t pac_fetch(const char *url, char *const *ca_files, char *out, size_t size,
                  struct failure *why);

/* System call filters, for the rest of the process's life. 0 or a negative errno. */
int pac_filter_settings(void); /* no network */
int pac_filter_script(void);   /* name resolution, memory and threads; no programs, no writing */

#endif
