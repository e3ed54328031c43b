/* The server's side of a connection: plain, or TLS by OpenSSL (channel_tls.c; channel_plain.c
 * replaces it in the guest, where there is no TLS). Both calls return bytes, 0 at the end, or a
 * negative errno; -EAGAIN: later.
 */
#ifndef TEST_BENCH_LOAD_CHANNEL_H
#define TEST_BENCH_LOAD_CHANNEL_H

#include <stddef.h>
#include <sys/types.h>

struct channel {
    int fd;
    void *tls; /* NULL: plain */
};

/* Reads certificate and key, or ends the program. Without it channels are plain. */
void channel_load(const char *certificate, const char *key);

void channel_open(struct channel *channel, int fd);
ssize_t channel_read(struct channel *channel, void *out, size_t size);
ssize_t channel_write(struct channel *channel, const void *data, size_t length);
void channel_close(struct channel *channel);

#endif
