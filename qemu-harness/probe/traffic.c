/* Generates the pseudo-random stream of the loads and computes its SHA-256. */
#include "qemu-harness/probe/traffic.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/text/encoding.h"
#include "qemu-harness/probe/probe.h"

void traffic_start(struct traffic *traffic, uint64_t bytes)
{
    uint64_t word = 88172645463325252ull; /* xorshift64 (Marsaglia, 2003) */
    traffic->left = bytes;
    traffic->block = 0;
    traffic->at = traffic->length = 0;
    for (size_t i = 0; i < TRAFFIC_BLOCK; i += sizeof(word)) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        memcpy(traffic->bytes + i, &word, sizeof(word));
    }
    br_sha256_init(&traffic->hash);
}

const uint8_t *traffic_next(struct traffic *traffic, size_t most, size_t *length)
{
    if (traffic->at == traffic->length && traffic->left > 0) {
        memcpy(traffic->bytes, &traffic->block,
               sizeof(traffic->block)); /* guest and host are little-endian */
        traffic->block++;
        traffic->at = 0;
        traffic->length = traffic->left < TRAFFIC_BLOCK ? (size_t)traffic->left : TRAFFIC_BLOCK;
        traffic->left -= traffic->length;
    }
    *length = traffic->length - traffic->at;
    if (*length > most)
        *length = most;
    return traffic->bytes + traffic->at;
}

void traffic_taken(struct traffic *traffic, size_t length)
{
    br_sha256_update(&traffic->hash, traffic->bytes + traffic->at, length);
    traffic->at += length;
}

void traffic_digest(const br_sha256_context *hash, char out[65])
{
    uint8_t digest[br_sha256_SIZE];
    br_sha256_out(hash, digest);
    hex_encode(out, digest, sizeof(digest));
}

int traffic_connect(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        probe_die("127.0.0.1:%u: %s", port, strerror(errno));
    return fd;
}
