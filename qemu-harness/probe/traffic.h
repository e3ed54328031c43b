/* Bytes for loads: a stream that both ends can make or check, and its SHA-256. */
#ifndef QEMU_HARNESS_PROBE_TRAFFIC_H
#define QEMU_HARNESS_PROBE_TRAFFIC_H

#include <bearssl.h>
#include <stddef.h>
#include <stdint.h>

#define TRAFFIC_BLOCK (64 * 1024)
#define TRAFFIC_MOST (1ull << 40)

/* The stream in blocks of 64 KiB: pseudo-random, the same in each, but for the block's number in
 * its first 8 bytes (little-endian), so that a lost, doubled or moved block changes the hash. */
struct traffic {
    uint64_t left; /* bytes yet to come of the whole stream */
    uint64_t block;
    size_t at, length; /* the rest of the current block: [at, length) */
    uint8_t bytes[TRAFFIC_BLOCK];
    br_sha256_context hash; /* of what was taken */
};

void traffic_start(struct traffic *traffic, uint64_t bytes);

/* The next bytes, at most `most`; *length is 0 at the end. They count once traffic_taken is told.
 */
const uint8_t *traffic_next(struct traffic *traffic, size_t most, size_t *length);
void traffic_taken(struct traffic *traffic, size_t length);

/* 64 hex digits and a NUL. */
void traffic_digest(const br_sha256_context *hash, char out[65]);

/* Connects to 127.0.0.1, or ends with a message. */
int traffic_connect(unsigned port);

#endif
