/* Where the sandbox's relay reaches the broker, and who may.
 *
 * `unix:PATH`: in a folder of mode 0700 that is ours, and the peer must run under our uid or be root.
 * `vsock:PORT`: the peer must have the CID given by --peer-cid, since every guest of a host dials the
 * same CID 2.
 * `tcp:ADDRESS:PORT`: any peer; each connection is TLS.
 * None of this replaces the token that each connection must bring.
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
    dev_t device;      /* of the socket's file, so that only our own is removed */
    ino_t inode;
};

/* 0 or a negative errno. A socket file that nobody listens on any more is replaced. */
int listener_open(struct listener *listener, const struct endpoint *endpoint, uint32_t peer_cid,
                  struct failure *why);

/* A non-blocking descriptor; -EAGAIN when nobody waits; -EPERM when the peer was refused and closed;
 * -EMFILE and the like when it cannot be had now. */
int listener_accept(struct listener *listener);

/* Stops listening and removes the socket's file. */
void listener_close(struct listener *listener);

#endif
