/* Which certificate authorities upstreams (and https proxies) may be vouched for by.
 *
 * The union of: the system's store as libcurl was built with, SSL_CERT_FILE, SSL_CERT_DIR,
 * NODE_EXTRA_CA_CERTS, and --ca-file. It is written once into an anonymous file which libcurl opens by
 * its name under /proc/self/fd, since libcurl keeps a parsed store for a file but parses a blob again for
 * each connection. Only certificates are taken over, whatever else a file holds.
 */
#ifndef HOST_BROKER_KEYS_TRUST_H
#define HOST_BROKER_KEYS_TRUST_H

#include <stddef.h>

#include "common/os/failure.h"
#include "host-broker/base/memory.h"

#define TRUST_FILE_MAX (16 * 1024 * 1024)

struct trust {
    int fd, previous_fd;             /* the previous one stays for transfers that began with it */
    char path[MEMORY_FILE_PATH_MAX]; /* for CURLOPT_CAINFO */
    size_t certificates;             /* without copies */
};

void trust_init(struct trust *trust);

/* Collects anew (start, SIGHUP). A --ca-file that cannot be read or holds no certificate is an error;
 * what the environment names wrongly is described by the first such failure in *warning (else its text
 * is empty). 0 or a negative errno; *trust is then as before. */
int trust_load(struct trust *trust, const char *const *ca_files, size_t count,
               struct failure *warning, struct failure *why);

void trust_close(struct trust *trust);

#endif
