/* Addresses as the boot configuration, the broker and the relay write them.
 *
 *     vsock:CID:PORT   a peer to dial
 *     vsock:PORT       where to listen
 *     tcp:HOST:PORT    HOST is an IPv4 or [IPv6] literal, or `gateway`: the default route's, at
 *                      each dial
 *     unix:PATH        absolute
 */
#ifndef COMMON_NET_ENDPOINT_H
#define COMMON_NET_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/os/failure.h"

#define ENDPOINT_TEXT_MAX 160
#define ENDPOINT_VSOCK_ANY UINT32_MAX /* VMADDR_CID_ANY, VMADDR_PORT_ANY */
#define ENDPOINT_PATH_MAX 108         /* sizeof(sockaddr_un.sun_path) */

enum endpoint_kind {
    ENDPOINT_VSOCK,
    ENDPOINT_TCP4,
    ENDPOINT_TCP6,
    ENDPOINT_TCP_GATEWAY,
    ENDPOINT_UNIX,
    ENDPOINT_KIND_COUNT
};

struct endpoint {
    enum endpoint_kind kind;
    uint32_t cid;                 /* ENDPOINT_VSOCK; ENDPOINT_VSOCK_ANY: only a port was given */
    uint32_t port;                /* vsock and TCP; 0: a free one, where one listens */
    uint8_t address[16];          /* TCP4 (first 4 bytes), TCP6 */
    char path[ENDPOINT_PATH_MAX]; /* ENDPOINT_UNIX, NUL-terminated */
};

/* True for the kinds that are reached over TCP. */
bool endpoint_is_tcp(const struct endpoint *endpoint);

/* Parses an endpoint to dial. 0 or -EINVAL with a reason that quotes the text. */
int endpoint_parse_dial(struct endpoint *out, const char *text, struct failure *why);

/* Parses an endpoint to listen on: as above, but vsock has a port only, and port 0 is allowed. */
int endpoint_parse_listen(struct endpoint *out, const char *text, struct failure *why);

/* The text form again, as endpoint_parse_* reads it; always NUL-terminated. */
void endpoint_format(const struct endpoint *endpoint, char out[ENDPOINT_TEXT_MAX]);

/* Fills a socket address; returns its length, or -EINVAL for ENDPOINT_TCP_GATEWAY. */
int endpoint_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *out);

/* A non-blocking, close-on-exec stream socket of the endpoint's family, bound and listening (UNIX:
 * mode 0600; an existing file is an error, not replaced; TCP: SO_REUSEADDR; TCP6: V6ONLY; vsock:
 * buffers raised as in endpoint_tune_vsock). Fills in the port when it was 0. The descriptor or a
 * negative errno with a reason. */
int endpoint_listen(struct endpoint *endpoint, int backlog, struct failure *why);

/* Starts a non-blocking connect on a close-on-exec stream socket. The descriptor (connected or in
 * progress) or a negative errno. */
int endpoint_dial(const struct endpoint *endpoint);

/* The IPv4 default gateway as a routing table in the form of /proc/net/route names it: that of the
 * lowest metric. 0, or -ENETUNREACH when there is none. `address` is in network order. */
int endpoint_default_gateway(const char *table, size_t length, uint8_t address[4]);

/* Like endpoint_dial, but for ENDPOINT_TCP_GATEWAY reads the table from `route_fd`, an open
 * /proc/net/route, from its start: for a process whose root is empty. */
int endpoint_dial_by(const struct endpoint *endpoint, int route_fd);

/* vsock only: SO_VM_SOCKETS_BUFFER_MAX_SIZE then _SIZE to 8 MiB, and a connect time-out of 250 ms
 * (net/vmw_vsock/af_vsock.c). Failures are ignored: an older kernel has smaller buffers. */
void endpoint_tune_vsock(int fd);

#endif
