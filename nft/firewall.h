/* The firewall of the sandbox's network namespace: the table `inet codev`, which accepts packets
 * over lo only (doc/design.md, "Network and firewall"). The sandbox does not start without it: when
 * nft_firewall_load fails, the start fails.
 *
 * All functions act on the network namespace that the calling thread is in when nft_firewall_load
 * is called, and need CAP_NET_ADMIN there.
 */
#ifndef NFT_FIREWALL_H
#define NFT_FIREWALL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/os/failure.h"

struct mnl_socket;

/* The result of a check of the firewall. */
enum firewall_event {
    FIREWALL_INTACT,   /* the table is as it was loaded */
    FIREWALL_RESTORED, /* the table had been changed; it was loaded again and is complete */
    FIREWALL_LOST,     /* the table is not in force and could not be loaded: the sandbox must end */
    FIREWALL_EVENT_COUNT
};

extern const char *const firewall_event_names[FIREWALL_EVENT_COUNT]; /* "intact", ... */

struct firewall {
    struct mnl_socket *owner; /* for requests; owns the table where the kernel supports owners */
    struct mnl_socket *watch; /* for notifications only */
    uint32_t sequence;        /* of the next request */
    uint32_t generation;      /* of the rule set, when the table was last found intact */
    bool has_owner;           /* the table belongs to `owner`: no other socket can change it, and
                               * it is deleted when `owner` is closed (since Linux 5.12) */
    bool has_reject;          /* refused packets are answered, not dropped */
};

/* Loads the policy in one atomic batch, which replaces an existing table of the same name, then
 * reads the whole table back and compares it byte for byte. Returns 0, or a negative errno with a
 * reason, which names the kernel option to enable when one is missing; no socket is open then. */
int nft_firewall_load(struct firewall *firewall, struct failure *why);

/* A descriptor to poll: it is readable after any table of the namespace was changed, also by
 * nft_firewall_load itself. */
int nft_firewall_watch_fd(const struct firewall *firewall);

/* Compares the table with the policy and loads it again when they differ. The caller calls it when
 * the descriptor is readable; calls at other times are harmless. Never blocks. Always sets *event.
 * Returns 0 with FIREWALL_INTACT, or with FIREWALL_RESTORED and the difference in *why; or a
 * negative errno with FIREWALL_LOST and the reason why loading failed in *why. */
int nft_firewall_check(struct firewall *firewall, enum firewall_event *event, struct failure *why);

/* Closes both sockets; the kernel then deletes the table if it has an owner. Accepts a firewall
 * that is zero or closed. */
void nft_firewall_close(struct firewall *firewall);

#endif
