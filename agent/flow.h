/* One direction of a connection: a ring buffer between two non-blocking sockets.
 *
 * The ring is 64 KiB of static memory that belongs to the caller; the kernel allocates a page when
 * it is first written. Whenever the ring is empty, it is filled from its start again, so that a
 * connection with little traffic uses one page. Bytes are received into the free room after the
 * last pending byte and sent from the first one, at most FLOW_WRITE_MAX at once: some hypervisors
 * fail on vsock packets above 32 KiB, and one limit for all transports is simpler than two.
 */
#ifndef AGENT_FLOW_H
#define AGENT_FLOW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FLOW_SIZE (64 * 1024)
#define FLOW_WRITE_MAX (32 * 1024)
#define FLOW_KEPT (4 * 1024) /* flow_reset does not release these first bytes */

struct flow {
    uint8_t *bytes;         /* FLOW_SIZE, aligned to a page */
    uint32_t start, length; /* pending bytes: `length` from `start`, with wrap-around */
    uint32_t touched;       /* no byte from here on was written since the last release */
    uint64_t received;      /* bytes from the socket, without those of flow_put */
};

void flow_init(struct flow *flow, uint8_t *bytes);

/* Empties the ring and returns the pages after the first FLOW_KEPT bytes to the kernel. */
void flow_reset(struct flow *flow);

/* Drops the pending bytes. */
void flow_discard(struct flow *flow);

/* Appends bytes that did not come from the socket. Returns false, with nothing appended, when they
 * do not fit. */
int flow_put(struct flow *flow, const void *data, size_t length);

/* True when one more byte fits. */
int flow_has_room(const struct flow *flow);

/* True when `length` more bytes fit. */
int flow_has_room_for(const struct flow *flow, size_t length);

/* flow_room returns the next contiguous free room; flow_grow tells how many bytes were written
 * there. flow_front returns the first contiguous pending bytes; flow_shrink removes those that were
 * sent. */
uint8_t *flow_room(const struct flow *flow, size_t *length);
void flow_grow(struct flow *flow, const uint8_t *where, size_t length);
const uint8_t *flow_front(const struct flow *flow, size_t *length);
void flow_shrink(struct flow *flow, size_t length);

/* Calls recv(2) once, into the free room, of which there must be some. Returns the bytes received,
 * 0 when the peer has ended its sending, or a negative errno (-EAGAIN when there is nothing to
 * read). */
ssize_t flow_receive(struct flow *flow, int fd);

/* Sends until the ring is empty or the socket takes no more. Returns the bytes sent (0 when it
 * would block), or a negative errno when the first send(2) of this call failed. */
ssize_t flow_transmit(struct flow *flow, int fd);

#endif
