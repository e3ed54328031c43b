/* Channels (channel.h) with TLS. Session tickets and keep-alive are OpenSSL's defaults, the same
 * for all measured programs. */
#include <errno.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/bench/load/channel.h"
#include "test/bench/load/load.h"

static SSL_CTX *context;

void channel_load(const char *certificate, const char *key)
{
    context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        load_die("read the certificate and its key");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
}

void channel_open(struct channel *channel, int fd)
{
    *channel = (struct channel){.fd = fd};
    if (!context)
        return;
    SSL *tls = SSL_new(context);
    if (!tls || SSL_set_fd(tls, fd) != 1)
        load_die("begin TLS");
    SSL_set_accept_state(tls);
    channel->tls = tls;
}

static ssize_t outcome(SSL *tls, int result)
{
    switch (SSL_get_error(tls, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return -EPROTO;
    }
}

ssize_t channel_read(struct channel *channel, void *out, size_t size)
{
    if (!channel->tls) {
        ssize_t got = recv(channel->fd, out, size, MSG_DONTWAIT);
        return got < 0 ? -errno : got;
    }
    int got = SSL_read(channel->tls, out, (int)size);
    return got > 0 ? got : outcome(channel->tls, got);
}

ssize_t channel_write(struct channel *channel, const void *data, size_t length)
{
    if (!channel->tls) {
        ssize_t put = send(channel->fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        return put < 0 ? -errno : put;
    }
    int put = SSL_write(channel->tls, data, (int)length);
    return put > 0 ? put : outcome(channel->tls, put);
}

void channel_close(struct channel *channel)
{
    SSL_free(channel->tls);
    channel->tls = NULL;
    close(channel->fd);
    channel->fd = -1;
}
