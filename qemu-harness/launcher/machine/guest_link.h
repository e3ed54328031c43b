/* The addresses by which the guest and this host reach each other. The machine fills them in. */
#ifndef QEMU_HARNESS_LAUNCHER_MACHINE_GUEST_LINK_H
#define QEMU_HARNESS_LAUNCHER_MACHINE_GUEST_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/net/endpoint.h"

struct guest_link {
    char broker_listen[ENDPOINT_TEXT_MAX]; /* the broker's --listen */
    char broker_peer_cid[16];              /* the broker's --peer-cid; "" without one */
    uint32_t broker_port;           /* what the guest dials; 0: the port that the broker reports */
    const char *const *broker_dial; /* how the guest dials it, without the port; ends with NULL */
    bool broker_pinned;             /* the guest comes over TLS and checks the broker's key */
    const char *way_in_listen; /* where the guest accepts the way in, as its configuration says */
    struct endpoint way_in;    /* where this host reaches the way in */
    bool way_in_hybrid;        /* there `CONNECT PORT` is written first and `OK ...` is answered */
    unsigned hello_seconds;    /* how long the guest may take to say hello */
};

#endif
