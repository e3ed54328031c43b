/* A ring buffer between two sockets. Its content and its free room each consist of at most two
 * contiguous pieces; each system call handles one piece. */
#include "agent/flow.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

void flow_init(struct flow *flow, uint8_t *bytes)
{
    *flow = (struct flow){.bytes = bytes};
}

void flow_reset(struct flow *flow)
{
    if (flow->touched > FLOW_KEPT) {
        /* When this fails (the memory is locked), the pages stay allocated. */
        madvise(flow->bytes + FLOW_KEPT, FLOW_SIZE - FLOW_KEPT, MADV_DONTNEED);
        flow->touched = FLOW_KEPT;
    }
    flow->start = flow->length = 0;
    flow->received = 0;
}

void flow_discard(struct flow *flow)
{
    flow->start = flow->length = 0;
}

int flow_has_room(const struct flow *flow)
{
    return flow->length < FLOW_SIZE;
}

int flow_has_room_for(const struct flow *flow, size_t length)
{
    return length <= FLOW_SIZE - flow->length;
}

uint8_t *flow_room(const struct flow *flow, size_t *length)
{
    uint32_t end = flow->start + flow->length;
    if (end >= FLOW_SIZE) {
        end -= FLOW_SIZE;
        *length = flow->start - end;
    } else {
        *length = FLOW_SIZE - end;
    }
    return flow->bytes + end;
}

void flow_grow(struct flow *flow, const uint8_t *where, size_t length)
{
    uint32_t end = (uint32_t)(where - flow->bytes + (ptrdiff_t)length);
    if (end > flow->touched)
        flow->touched = end;
    flow->length += (uint32_t)length;
}

int flow_put(struct flow *flow, const void *data, size_t length)
{
    if (length > FLOW_SIZE - flow->length)
        return 0;
    const uint8_t *next = data;
    while (length > 0) {
        size_t piece;
        uint8_t *room = flow_room(flow, &piece);
        if (piece > length)
            piece = length;
        memcpy(room, next, piece);
        flow_grow(flow, room, piece);
        next += piece;
        length -= piece;
    }
    return 1;
}

ssize_t flow_receive(struct flow *flow, int fd)
{
    size_t room_length;
    uint8_t *room = flow_room(flow, &room_length);
    ssize_t received;
    do {
        received = recv(fd, room, room_length, MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    if (received < 0)
        return -errno;
    flow_grow(flow, room, (size_t)received);
    flow->received += (uint64_t)received;
    return received;
}

void flow_shrink(struct flow *flow, size_t length)
{
    flow->length -= (uint32_t)length;
    flow->start += (uint32_t)length;
    if (flow->start >= FLOW_SIZE)
        flow->start -= FLOW_SIZE;
    if (flow->length == 0)
        flow->start = 0;
}

const uint8_t *flow_front(const struct flow *flow, size_t *length)
{
    *length = FLOW_SIZE - flow->start < flow->length ? FLOW_SIZE - flow->start : flow->length;
    return flow->bytes + flow->start;
}

ssize_t flow_transmit(struct flow *flow, int fd)
{
    ssize_t total = 0;
    while (flow->length > 0) {
        size_t piece;
        const uint8_t *front = flow_front(flow, &piece);
        if (piece > FLOW_WRITE_MAX)
            piece = FLOW_WRITE_MAX;
        ssize_t sent = send(fd, front, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || total > 0))
            return total; /* after some bytes, the next call reports the error */
        if (sent < 0)
            return -errno;
        flow_shrink(flow, (size_t)sent);
        total += sent;
        if ((size_t)sent < piece)
            break;
    }
    return total;
}
