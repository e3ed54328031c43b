/* One TLS connection over one non-blocking socket, used in place of recv(2) and send(2).
 *
 * The engine is BearSSL's, with a buffer of one record in each direction: it takes no further
 * record while plain bytes of the last one wait to be taken, and accepts no further plain bytes
 * while a record waits for the socket. So a link holds at most one record each way, and its owner
 * must handle both:
 *
 *     tls_link_unsent   a record waits for the socket: watch the socket for room, even with nothing
 *                       more to send
 *     tls_link_held     plain bytes wait that the socket will not report: call again when there is
 *                       room. An owner that starts a record only with room for TLS_RECORD_MAX, and
 *                       takes all of it, never leaves any
 *
 * The handshake runs within receiving and sending. An end of the socket without close_notify is
 * -ECONNRESET, so a connection that was cut never looks like one that ended (RFC 5246, section
 * 7.2.1).
 */
#ifndef COMMON_NET_TLS_LINK_H
#define COMMON_NET_TLS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <bearssl.h>

#include "common/net/tls_profile.h"

struct tls_link {
    br_ssl_engine_context *engine;
    bool heard;       /* the first byte came, and can begin a record */
    bool established; /* the handshake is over: the peer's key is proved */
    int error;        /* the negative errno that ended it, 0 for none */
};

/* `engine` was set up and reset by its owner. */
void tls_link_start(struct tls_link *link, br_ssl_engine_context *engine);

/* Goes on with the handshake. 1 once it is over; 0: come again when the socket is ready; or a
 * negative errno: -EKEYREJECTED the peer has not the pinned key, -EPROTO it does not speak our TLS,
 * -ECONNRESET it ended, or what the socket says. */
int tls_link_handshake(struct tls_link *link, int fd);

/* Plain bytes of one record, or of what is held of one: up to `room`, at least 1. 0: the peer's
 * close_notify; -EAGAIN: nothing there; else as above. */
ssize_t tls_link_receive(struct tls_link *link, int fd, void *out, size_t room);

/* Takes plain bytes and sends as far as the socket takes it; also with length 0. Bytes taken (0:
 * none now), or a negative errno. */
ssize_t tls_link_transmit(struct tls_link *link, int fd, const void *data, size_t length);

/* Says close_notify: nothing can be sent behind it, and what still comes is dropped. The record may
 * wait (tls_link_unsent). */
void tls_link_end(struct tls_link *link, int fd);

bool tls_link_unsent(const struct tls_link *link);
size_t tls_link_held(const struct tls_link *link); /* bytes */

#endif
