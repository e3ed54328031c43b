/* Channels (channel.h) without TLS. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/bench/load/channel.h"
#include "test/bench/load/load.h"

void channel_load(const char *certificate, const char *key)
{
    (void)certificate;
    (void)key;
    load_die("this build has no TLS");
}

void channel_open(struct channel *channel, int fd)
{
    *channel = (struct channel){.fd = fd};
}

ssize_t channel_read(struct channel *channel, void *out, size_t size)
{
    ssize_t got = recv(channel->fd, out, size, MSG_DONTWAIT);
    return got < 0 ? -errno : got;
}

ssize_t channel_write(struct channel *channel, const void *data, size_t length)
{
    ssize_t put = send(channel->fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    return put < 0 ? -errno : put;
}

void channel_close(struct channel *channel)
{
    close(channel->fd);
    channel->fd = -1;
}
