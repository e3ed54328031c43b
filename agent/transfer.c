/* Moves bytes between sockets and rings. The system calls are in flow.c and, for TLS, in
 * common/net/tls_link.c. */
#include "agent/transfer.h"

#include <errno.h>
#include <sys/socket.h>

#include "common/net/tls_link.h"

/* The engine of a side, or NULL: only a target has one. */
static struct tls_link *link_of(const struct connection *connection, enum connection_side which)
{
    return which == SIDE_TARGET ? connection->tls : NULL;
}

/* flow_transmit through a TLS engine: bytes that the engine took are removed from the ring. */
static ssize_t transmit_by(struct tls_link *link, struct flow *flow, struct side *side)
{
    ssize_t total = 0, taken;
    do {
        size_t length;
        const uint8_t *front = flow_front(flow, &length);
        taken = tls_link_transmit(link, side->fd, front, length);
        if (taken > 0)
            flow_shrink(flow, (size_t)taken);
        total += taken > 0 ? taken : 0;
    } while (taken > 0 && flow->length > 0);
    side->unsent = tls_link_unsent(link);
    return total > 0 ? total : taken;
}

/* flow_receive through a TLS engine: whole records, while there is room for another. The end of the
 * ring may split a record. */
static ssize_t receive_by(struct tls_link *link, struct flow *flow, struct side *side)
{
    ssize_t total = 0, received = -EAGAIN;
    while (tls_link_held(link) > 0 || flow_has_room_for(flow, TLS_RECORD_MAX)) {
        size_t length;
        uint8_t *room = flow_room(flow, &length);
        received = tls_link_receive(link, side->fd, room, length);
        if (received <= 0)
            break;
        flow_grow(flow, room, (size_t)received);
        total += received;
    }
    side->unsent = tls_link_unsent(link);
    flow->received += (uint64_t)total;
    return total > 0 ? total : received;
}

void transfer_to(struct connection *connection, enum connection_side which, int64_t now)
{
    struct flow *flow = &connection->flows[other_side(which)];
    struct side *side = &connection->sides[which];
    struct tls_link *link = link_of(connection, which);
    if (flow->length == 0 && !side->unsent)
        return;
    ssize_t sent = side->refuses ? -EPIPE
                   : link        ? transmit_by(link, flow, side)
                                 : flow_transmit(flow, side->fd);
    if (sent > 0)
        connection->moved = now;
    if (sent >= 0)
        return;
    flow_discard(flow);
    side->refuses = true;
    side->unsent = false;
    side->broken |= sent != -EPIPE;
    side->gone |= side->ended;
}

/* flow_receive, with the length of a piece in front, written once it is known. */
static ssize_t receive_as_piece(struct flow *flow, int fd)
{
    uint8_t head[PIECE_HEAD] = {0};
    struct flow before = *flow;
    flow_put(flow, head, sizeof(head));
    ssize_t received = flow_receive(flow, fd);
    if (received <= 0) {
        flow->length = before.length;
        return received;
    }
    uint32_t length = flow->length;
    piece_write_head(head, (size_t)received);
    flow->length = before.length;
    flow_put(flow, head, sizeof(head));
    flow->length = length;
    return received;
}

/* flow_receive without the lengths of the pieces. Bytes behind the end are a protocol error. */
static ssize_t receive_pieces(struct piece_reader *reader, struct flow *flow, int fd)
{
    static uint8_t bytes[16 * 1024];
    size_t room = FLOW_SIZE - flow->length;
    ssize_t received = recv(fd, bytes, room < sizeof(bytes) ? room : sizeof(bytes), MSG_DONTWAIT);
    if (received <= 0)
        return received < 0 ? (errno == EINTR ? -EAGAIN : -errno) : 0;
    size_t length = (size_t)received;
    for (size_t at = 0; at < length;) {
        at += piece_read_head(reader, bytes + at, length - at);
        size_t piece = reader->left < length - at ? reader->left : length - at;
        if (!piece_reader_is_right(reader) || (piece == 0 && at < length))
            return -EPROTO;
        flow_put(flow, bytes + at, piece);
        reader->left -= (uint16_t)piece;
        at += piece;
    }
    flow->received += length;
    return received;
}

static ssize_t receive_from(struct connection *connection, enum connection_side which)
{
    struct flow *flow = &connection->flows[which];
    int fd = connection->sides[which].fd;
    struct tls_link *link = link_of(connection, which);
    if (link)
        return receive_by(link, flow, &connection->sides[which]);
    if (!connection->framed)
        return flow_receive(flow, fd);
    return which == SIDE_CLIENT ? receive_pieces(&connection->pieces, flow, fd)
                                : receive_as_piece(flow, fd);
}

/* True when the peer closed completely, not only its sending. On TCP always false: it does not
 * show the difference. */
static bool takes_nothing(int fd)
{
    return send(fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EPIPE;
}

void transfer_from(struct connection *connection, enum connection_side which, int64_t now)
{
    struct side *side = &connection->sides[which];
    bool in_pieces = connection->framed && which == SIDE_CLIENT;
    ssize_t received = receive_from(connection, which);
    if (received == -EAGAIN)
        return;
    if (received > 0) {
        connection->moved = now;
        if (in_pieces && connection->pieces.ended)
            side->ended = side->leaving = true;
        transfer_to(connection, other_side(which), now);
        return;
    }
    side->ended = side->leaving = true;
    if (in_pieces) {
        side->gone = true;
        side->broken |= !connection->pieces.ended || received == -EPROTO;
        connection->moved = now;
        return;
    }
    side->broken |= received < 0;
    side->gone = side->broken || side->refuses || takes_nothing(side->fd);
    side->broken |= connection_is_cut(connection, which);
    connection->moved = now;
}
