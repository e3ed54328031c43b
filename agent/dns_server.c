/* Receives DNS queries on UDP and TCP sockets and sends the answers of dns_answer. */
#include "agent/dns_server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/dns.h"
#include "agent/event_set.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"

static void stream_close(struct dns_stream *stream)
{
    fd_close(&stream->fd);
    stream->armed = 0;
    stream->length = 0;
    stream->deadline = NEVER;
}

static void answer_datagrams(int fd)
{
    uint8_t query[DNS_STREAM_QUERY_MAX], answer[DNS_ANSWER_MAX];
    for (unsigned i = 0; i < DNS_QUERIES_PER_WAKE; i++) {
        struct sockaddr_storage peer;
        socklen_t peer_length = sizeof(peer);
        /* A longer message is cut; the question stands at its start. */
        ssize_t got = recvfrom(fd, query, sizeof(query), MSG_DONTWAIT, (struct sockaddr *)&peer,
                               &peer_length);
        if (got < 0 && errno == EAGAIN)
            return;
        size_t length = got > 0 ? dns_answer(query, (size_t)got, answer, sizeof(answer)) : 0;
        if (length > 0)
            sendto(fd, answer, length, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&peer,
                   peer_length);
    }
}

/* Returns a free slot, or the slot of the connection whose last question is oldest, which is
 * closed. An event that was fetched for the closed connection is then handled for the new one,
 * where recv(2) finds nothing to read, which is harmless. */
static struct dns_stream *stream_take(struct dns_server *server)
{
    struct dns_stream *chosen = &server->streams[0];
    for (unsigned i = 0; i < DNS_STREAMS_MAX; i++) {
        struct dns_stream *stream = &server->streams[i];
        if (stream->fd < 0)
            return stream;
        if (stream->used < chosen->used)
            chosen = stream;
    }
    stream_close(chosen);
    return chosen;
}

static void stream_renew(struct dns_server *server, struct dns_stream *stream, int64_t now)
{
    stream->used = ++server->used;
    stream->deadline = now + DNS_STREAM_MS;
    if (stream->deadline < server->next_deadline)
        server->next_deadline = stream->deadline;
}

static void accept_streams(struct dns_server *server, int listener, int64_t now)
{
    for (unsigned i = 0; i < DNS_STREAMS_MAX; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        struct dns_stream *stream = stream_take(server);
        stream->fd = fd;
        stream_renew(server, stream, now);
        event_set_watch(server->epoll, fd, &stream->armed, EPOLLIN,
                        REFERENCE(REFERENCE_DNS_STREAM, stream - server->streams));
    }
}

void dns_server_event(struct dns_server *server, unsigned index, int64_t now)
{
    if (server->is_stream[index])
        accept_streams(server, server->fds[index], now);
    else
        answer_datagrams(server->fds[index]);
}

/* Answers the first message in the buffer and removes it. Returns 1 when done, 0 when more bytes
 * are needed, -1 when the connection must be closed. */
static int answer_next(struct dns_stream *stream)
{
    uint8_t answer[2 + DNS_ANSWER_MAX];
    if (stream->length < 2)
        return 0;
    size_t length = (size_t)stream->bytes[0] << 8 | stream->bytes[1];
    if (length > DNS_STREAM_QUERY_MAX)
        return -1;
    if (stream->length < 2 + length)
        return 0;
    size_t answer_length = dns_answer(stream->bytes + 2, length, answer + 2, DNS_ANSWER_MAX);
    if (answer_length == 0)
        return -1;
    answer[0] = (uint8_t)(answer_length >> 8);
    answer[1] = (uint8_t)answer_length;
    answer_length += 2;
    if (send(stream->fd, answer, answer_length, MSG_DONTWAIT | MSG_NOSIGNAL) !=
        (ssize_t)answer_length)
        return -1;
    stream->length -= (uint16_t)(2 + length);
    memmove(stream->bytes, stream->bytes + 2 + length, stream->length);
    return 1;
}

void dns_stream_event(struct dns_server *server, unsigned index, int64_t now)
{
    struct dns_stream *stream = &server->streams[index];
    if (stream->fd < 0)
        return;
    ssize_t got = recv(stream->fd, stream->bytes + stream->length,
                       sizeof(stream->bytes) - stream->length, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        stream_close(stream);
        return;
    }
    stream->length += (uint16_t)got;
    int result;
    while ((result = answer_next(stream)) > 0)
        stream_renew(server, stream, now);
    if (result < 0)
        stream_close(stream);
}

void dns_server_expire(struct dns_server *server, int64_t now)
{
    server->next_deadline = NEVER;
    for (unsigned i = 0; i < DNS_STREAMS_MAX; i++) {
        struct dns_stream *stream = &server->streams[i];
        if (stream->fd >= 0 && stream->deadline <= now)
            stream_close(stream);
        if (stream->deadline < server->next_deadline)
            server->next_deadline = stream->deadline;
    }
}

int dns_server_init(struct dns_server *server, int epoll, const struct relay_config *config,
                    struct failure *why)
{
    server->epoll = epoll;
    server->count = config->dns_count;
    server->next_deadline = NEVER;
    for (unsigned i = 0; i < DNS_STREAMS_MAX; i++) {
        server->streams[i].fd = -1;
        server->streams[i].deadline = NEVER;
    }
    for (unsigned i = 0; i < server->count; i++) {
        int type = 0;
        socklen_t length = sizeof(type);
        uint32_t armed = 0;
        server->fds[i] = config->dns_fds[i];
        if (getsockopt(server->fds[i], SOL_SOCKET, SO_TYPE, &type, &length) < 0)
            return failure_errno(why, errno, "DNS socket %d", server->fds[i]);
        server->is_stream[i] = type == SOCK_STREAM;
        event_set_watch(epoll, server->fds[i], &armed, EPOLLIN, REFERENCE(REFERENCE_DNS_SOCKET, i));
        if (armed == 0)
            return failure_errno(why, errno, "watch DNS socket %d", server->fds[i]);
    }
    return 0;
}
