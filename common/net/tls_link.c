/* Moves TLS records between an engine and a socket. One call moves at most PIECES_PER_CALL pieces,
 * so that a peer that sends only empty records or warnings does not hold up other connections. */
#include "common/net/tls_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define PIECES_PER_CALL 64
#define RECORD_HANDSHAKE 22 /* RFC 5246, section 6.2.1; the only ones that can come first */
#define RECORD_ALERT 21

void tls_link_start(struct tls_link *link, br_ssl_engine_context *engine)
{
    *link = (struct tls_link){.engine = engine};
}

static int fail(struct tls_link *link, int error)
{
    if (link->error == 0)
        link->error = error;
    return link->error;
}

/* The state of the engine. A received close_notify ends receiving at once; the engine itself would
 * first wait until its own is sent. */
static int verdict(struct tls_link *link)
{
    if (link->error != 0)
        return link->error;
    if (!(br_ssl_engine_current_state(link->engine) & BR_SSL_CLOSED))
        return 0;
    switch (br_ssl_engine_last_error(link->engine)) {
    case BR_ERR_OK:
        return 0;
    case BR_ERR_X509_NOT_TRUSTED:
    case BR_ERR_BAD_SIGNATURE:
        return fail(link, -EKEYREJECTED);
    default:
        return fail(link, -EPROTO);
    }
}

/* Sends what is ready. 1: a piece went out; 0: the socket takes no more, or there is nothing. */
static int send_piece(struct tls_link *link, int fd)
{
    size_t length;
    unsigned char *record = br_ssl_engine_sendrec_buf(link->engine, &length);
    if (!record)
        return 0;
    ssize_t sent = send(fd, record, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return errno == EINTR ? 1 : errno == EAGAIN ? 0 : fail(link, -errno);
    br_ssl_engine_sendrec_ack(link->engine, (size_t)sent);
    return 1;
}

/* The first byte shows whether the peer speaks TLS. */
static bool can_begin(struct tls_link *link, unsigned char first)
{
    link->heard = true;
    return first == RECORD_HANDSHAKE || first == RECORD_ALERT;
}

/* Receives what the engine wants next: a header, or the rest of a record. As send_piece. */
static int receive_piece(struct tls_link *link, int fd)
{
    size_t room;
    unsigned char *record = br_ssl_engine_recvrec_buf(link->engine, &room);
    if (!record)
        return 0;
    ssize_t received = recv(fd, record, room, MSG_DONTWAIT);
    if (received < 0)
        return errno == EINTR ? 1 : errno == EAGAIN ? 0 : fail(link, -errno);
    if (received == 0)
        return fail(link, -ECONNRESET);
    if (!link->heard && !can_begin(link, record[0]))
        return fail(link, -EPROTO);
    br_ssl_engine_recvrec_ack(link->engine, (size_t)received);
    return 1;
}

/* Moves records both ways until neither can go on, plain bytes are there, or PIECES_PER_CALL. */
static int run(struct tls_link *link, int fd)
{
    for (int pieces = 0; pieces < PIECES_PER_CALL && verdict(link) == 0; pieces++) {
        int sent = send_piece(link, fd);
        if (sent < 0)
            break;
        unsigned state = br_ssl_engine_current_state(link->engine);
        link->established |= (state & BR_SSL_SENDAPP) != 0;
        if (state & BR_SSL_RECVAPP)
            break;
        if (receive_piece(link, fd) <= 0 && sent == 0)
            break;
    }
    link->established |= (br_ssl_engine_current_state(link->engine) & BR_SSL_SENDAPP) != 0;
    return verdict(link);
}

int tls_link_handshake(struct tls_link *link, int fd)
{
    int result = run(link, fd);
    if (result < 0)
        return result;
    if (br_ssl_engine_current_state(link->engine) & BR_SSL_CLOSED)
        return fail(link, -ECONNRESET); /* the peer sent close_notify during the handshake */
    return link->established;
}

ssize_t tls_link_receive(struct tls_link *link, int fd, void *out, size_t room)
{
    size_t length;
    int result = run(link, fd);
    unsigned char *plain = br_ssl_engine_recvapp_buf(link->engine, &length);
    if (!plain && link->engine->shutdown_recv)
        return 0; /* also when our own close_notify could not be sent any more */
    if (!plain)
        return result < 0 ? result : -EAGAIN;
    if (length > room)
        length = room;
    memcpy(out, plain, length);
    br_ssl_engine_recvapp_ack(link->engine, length);
    return (ssize_t)length;
}

/* Sends all that is ready. */
static int flush(struct tls_link *link, int fd)
{
    int sent;
    do
        sent = send_piece(link, fd);
    while (sent > 0);
    return verdict(link);
}

ssize_t tls_link_transmit(struct tls_link *link, int fd, const void *data, size_t length)
{
    size_t taken = 0;
    for (;;) {
        size_t room;
        int result = flush(link, fd);
        if (result < 0)
            return taken > 0 ? (ssize_t)taken : result; /* the next call returns the error again */
        unsigned char *plain = br_ssl_engine_sendapp_buf(link->engine, &room);
        if (taken == length || (!plain && taken > 0))
            return (ssize_t)taken;
        if (!plain)
            return link->established && !tls_link_unsent(link) ? -EPIPE /* it was ended */ : 0;
        if (room > length - taken)
            room = length - taken;
        memcpy(plain, (const char *)data + taken, room);
        br_ssl_engine_sendapp_ack(link->engine, room);
        br_ssl_engine_flush(link->engine, 0);
        taken += room;
    }
}

void tls_link_end(struct tls_link *link, int fd)
{
    br_ssl_engine_close(link->engine);
    (void)flush(link, fd);
}

bool tls_link_unsent(const struct tls_link *link)
{
    size_t length;
    return link->error == 0 && br_ssl_engine_sendrec_buf(link->engine, &length);
}

size_t tls_link_held(const struct tls_link *link)
{
    size_t length;
    (void)br_ssl_engine_recvapp_buf(link->engine, &length);
    return length;
}
