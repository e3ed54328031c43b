/* The firewall of the sandbox's network namespace (design, section 7): table `inet codev`, which lets
 * packets pass over lo and nothing else. It is mandatory: when nft_firewall_load fails, the start fails.
 *
 * All functions act on the network namespace that the calling thread is in when nft_firewall_load is
 * called, and need CAP_NET_ADMIN there.
 */
#ifndef NFT_FIREWALL_H
#define NFT_FIREWALL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/os/failure.h"

struct mnl_socket;

/* What a look at the firewall found. */
enum firewall_event {
    FIREWALL_INTACT,   /* as it was loaded; someone changed something else, or nothing */
    FIREWALL_RESTORED, /* someone had changed it; it was loaded again and is complete */
    FIREWALL_LOST,     /* it is not in force and could not be loaded again: nothing may go on */
    FIREWALL_EVENT_COUNT
};

extern const char *const firewall_event_names[FIREWALL_EVENT_COUNT]; /* "intact", ... */

struct firewall {
    struct mnl_socket *owner; /* requests; owns the table where the kernel knows owners */
    struct mnl_socket *watch; /* notifications only */
    uint32_t sequence;        /* of the next request */
    uint32_t generation;      /* the rule set's, when it was last found right */
    bool has_owner;           /* the table belongs to `owner`, vanishes with it, and nobody else may
                               * change it (Linux 5.12) */
    bool has_reject;          /* refused packets are answered, not dropped */
};

/* Puts the policy in force in one atomic batch, replacing a table of the same name that was left behind,
 * then reads the whole table back and compares it byte for byte. 0, or a negative errno with a reason
 * that names a missing piece of the kernel and what to enable; nothing is open then. */
int nft_firewall_load(struct firewall *firewall, struct failure *why);

/* To be polled for reading: readable when anyone changed any table of the namespace, ourselves at load
 * included. */
int nft_firewall_watch_fd(const struct firewall *firewall);

/* To be called when the descriptor is readable (at any other time it does no harm). Never blocks. Puts
 * the policy in force again when it is not. *event is always set: with 0 FIREWALL_INTACT or
 * FIREWALL_RESTORED (then `why` tells what was found), with a negative errno FIREWALL_LOST (then why it
 * could not be restored). */
int nft_firewall_check(struct firewall *firewall, enum firewall_event *event, struct failure *why);

/* Closes both sockets. An owned table vanishes with that. Harmless on one that is zero or closed. */
void nft_firewall_close(struct firewall *firewall);

#endif
