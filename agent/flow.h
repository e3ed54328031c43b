/* One direction of a connection: a fixed ring of bytes between two non-blocking sockets.
 *
 * The ring is 64 KiB of static memory that its owner lends; the kernel gives a page of it only once
 * it is touched. It fills from the start again whenever it runs empty, so that a connection with
 * little traffic touches one page. Bytes are received into the free room behind the last one and
 * sent from the first one, at most FLOW_WRITE_MAX at once: some hypervisors fail on vsock packets
 * above 32 KiB, and one rule for every transport is simpler than two.
 */
#ifndef AGENT_FLOW_H
#define AGENT_FLOW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FLOW_SIZE (64 * 1024)
#define FLOW_WRITE_MAX (32 * 1024)
#define FLOW_KEPT (4 * 1024) /* what flow_reset leaves with the process */

struct flow {
    uint8_t *bytes;         /* FLOW_SIZE, aligned to a page */
    uint32_t start, length; /* pending bytes: `length` from `start`, around the end */
    uint32_t touched;       /* no byte from here on was ever written: its pages need no release */
    uint64_t received;      /* bytes that came from the socket, without those put in by flow_put */
};

void flow_init(struct flow *flow, uint8_t *bytes);

/* Empties the ring and gives the pages behind the first FLOW_KEPT bytes back to the kernel. */
void flow_reset(struct flow *flow);

/* Drops what is pending. */
void flow_discard(struct flow *flow);

/* Appends bytes of our own. The caller knows that there is room: false (and nothing done) if
 * not. */
int flow_put(struct flow *flow, const void *data, size_t length);

/* True while a byte more could be received. */
int flow_has_room(const struct flow *flow);

/* The same for so many. */
int flow_has_room_for(const struct flow *flow, size_t length);

/* The next free room, and the first pending bytes, up to the ring's end; then how much was written
 * there, or is gone. */
uint8_t *flow_room(const struct flow *flow, size_t *length);
void flow_grow(struct flow *flow, const uint8_t *where, size_t length);
const uint8_t *flow_front(const struct flow *flow, size_t *length);
void flow_shrink(struct flow *flow, size_t length);

/* One recv(2) into the free room. Bytes received; 0: the peer's sending ended; or a negative errno
 * (-EAGAIN: nothing there). There must be room. */
ssize_t flow_receive(struct flow *flow, int fd);

/* Sends until the ring is empty or the socket takes no more. Bytes sent (0: it would block), or a
 * negative errno when the first send of this call failed. */
ssize_t flow_transmit(struct flow *flow, int fd);

#endif
