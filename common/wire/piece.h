/* Pieces: how codev-sandbox and codev-agent tell the end of a stream from a break of the
 * connection.
 *
 * With `way_in.framed` in the boot configuration everything on a way-in connection behind the
 * preface and `OK\n` comes in pieces, in both directions: two bytes of length, the higher first,
 * then so many bytes. Length 0 is the end of this side's sending. Nothing follows but perhaps one
 * more length 0, which says that this side takes nothing any more either. A connection that ends
 * without an end is broken: bytes may be missing.
 *
 * No kind of vsock gives this by itself: vhost-device-vsock closes a stream in the same way after
 * an end, after a reset and after a loss of its own, and it drops what it holds for a host that
 * reads slowly when the guest's kernel resets a connection 8 s after close(2) (VSOCK_CLOSE_TIMEOUT
 * in net/vmw_vsock/virtio_transport_common.c). So the guest's side never closes such a connection
 * first: it sends its end and waits until the host closes, who then has everything. Pure functions:
 * no I/O.
 */
#ifndef COMMON_WIRE_PIECE_H
#define COMMON_WIRE_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIECE_HEAD 2 /* bytes of length in front of a piece */
#define PIECE_MAX 65535

/* Where a reader is; zeroed at the start. */
struct piece_reader {
    uint8_t head_length; /* bytes of the next length that are there already */
    uint8_t head;        /* the first of them */
    uint16_t left;       /* bytes of the current piece that are still to come */
    bool ended;          /* the end was read */
    bool closed;         /* and the second one */
};

void piece_write_head(uint8_t out[PIECE_HEAD], size_t length);

/* Takes lengths, and no other bytes, from the front of `bytes`. Returns how many bytes they were.
 * Afterwards `left` bytes of the stream come next; 0: more bytes are needed, or the end was read.
 * Nothing is taken behind the second end. */
size_t piece_read_head(struct piece_reader *reader, const uint8_t *bytes, size_t length);

/* False when a piece was announced behind the end: the sender does not speak in pieces. */
static inline bool piece_reader_is_right(const struct piece_reader *reader)
{
    return !reader->ended || reader->left == 0;
}

#endif
