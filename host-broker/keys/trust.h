/* The certificate authorities that are trusted for upstreams and https proxies.
 *
 * They are the union of the system's store that libcurl was built with, SSL_CERT_FILE,
 * SSL_CERT_DIR, NODE_EXTRA_CA_CERTS, and --ca-file. All are written once into a file in memory, and
 * libcurl gets its path: libcurl caches the parsed store of a path, but parses a blob again for
 * each connection. Files may hold other things; only certificates are taken.
 */
#ifndef HOST_BROKER_KEYS_TRUST_H
#define HOST_BROKER_KEYS_TRUST_H

#include <stddef.h>

#include "common/os/failure.h"
#include "common/os/memory.h"

#define TRUST_FILE_MAX (16 * 1024 * 1024)

struct trust {
    int fd, previous_fd; /* the previous one stays open for transfers that began with it */
    char path[MEMORY_FILE_PATH_MAX]; /* for CURLOPT_CAINFO */
    size_t certificates;             /* without duplicates */
};

void trust_init(struct trust *trust);

/* Collects the certificates, at the start and at SIGHUP. A --ca-file that cannot be read or holds
 * no certificate is an error. The first unusable source that the environment names is described in
 * *warning, whose text is otherwise empty. 0, or a negative errno with a reason and *trust
 * unchanged. */
int trust_load(struct trust *trust, const char *const *ca_files, size_t count,
               struct failure *warning, struct failure *why);

void trust_close(struct trust *trust);

#endif
