/* See transfer.h. The ring's own system calls are in flow.c, those of TLS in common/net/tls_link.c. */
#include "agent/transfer.h"

#include <errno.h>
#include <sys/socket.h>

#include "agent/relay.h"
#include "common/net/tls_link.h"

/* The engine of a side, or NULL: only a target has one. */
static struct tls_link *link_of(const struct connection *connection, enum connection_side which)
{
    return which == SIDE_TARGET ? connection->tls : NULL;
}

/* As flow_transmit, through an engine: what it has taken is gone from the ring. */
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

/* As flow_receive, through an engine: records, each whole, while there is room for another. The ring's
 * end may cut one in two. */
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

void transfer_to(struct relay *relay, struct connection *connection, enum connection_side which)
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
        connection->moved = relay->now;
    if (sent >= 0)
        return;
    flow_discard(flow);
    side->refuses = true;
    side->unsent = false;
    side->broken |= sent != -EPIPE;
    side->gone |= side->ended;
}

/* True when the peer closed whole, not only its sending. TCP cannot tell and says false. */
static bool takes_nothing(int fd)
{
    return send(fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EPIPE;
}

void transfer_from(struct relay *relay, struct connection *connection, enum connection_side which)
{
    struct side *side = &connection->sides[which];
    struct flow *flow = &connection->flows[which];
    struct tls_link *link = link_of(connection, which);
    ssize_t received = link ? receive_by(link, flow, side) : flow_receive(flow, side->fd);
    if (received == -EAGAIN)
        return;
    if (received > 0) {
        connection->moved = relay->now;
        transfer_to(relay, connection, other_side(which));
        return;
    }
    side->ended = side->leaving = true;
    side->broken |= received < 0;
    side->gone = side->broken || side->refuses || takes_nothing(side->fd);
    side->broken |= connection_is_cut(connection, which);
    connection->moved = relay->now;
}
