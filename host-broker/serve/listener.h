/* The listeners on which the broker accepts the relay, and the check of peers.
 *
 * `unix:PATH`: in a folder of mode 0700 that belongs to the broker's user; the peer must run under
 * the same uid or be root. `vsock:PORT`: the peer must have the CID given by --peer-cid, because
 * every guest of a host reaches CID 2. `tcp:ADDRESS:PORT`: any peer; each connection is TLS.
 *
 * In addition, each connection must present the token.
 */
#ifndef HOST_BROKER_SERVE_LISTENER_H
#define HOST_BROKER_SERVE_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/net/endpoint.h"
#include "common/os/failure.h"

#define LISTENER_BACKLOG 4096

struct listener {
    int fd;     /* -1: closed */
    bool armed; /* watched by the event loop */
    struct endpoint endpoint;
    uint32_t peer_cid; /* 0: any */
    dev_t device;      /* of the socket's file: no other file is removed */
    ino_t inode;
};

/* 0 or a negative errno with a reason. A socket file on which nobody listens is replaced. */
int listener_open(struct listener *listener, const struct endpoint *endpoint, uint32_t peer_cid,
                  struct failure *why);

/* A non-blocking descriptor; -EAGAIN when no connection waits; -EPERM when the peer was refused and
 * closed; -EMFILE and similar when there is no descriptor. */
int listener_accept(struct listener *listener);

/* Stops listening and removes the socket's file. */
void listener_close(struct listener *listener);

#endif
