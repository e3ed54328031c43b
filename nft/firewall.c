/* Loads the firewall, watches it and restores it.
 *
 * Which optional features a kernel has is found by using them: when a batch is refused because of a
 * feature, it is sent again without that feature (the kernel applies nothing of a refused batch).
 * Acknowledgements alone do not count as success; the table is always read back.
 *
 * Notifications only wake the caller up. The table is compared when the generation number of the
 * rule set has changed, so a lost notification (ENOBUFS), or one about another table, costs one
 * comparison and no more. The socket for notifications joins its group before the table is created,
 * so that it misses no change.
 */
#include "nft/firewall.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>

#include "common/os/cleanup.h"
#include "nft/batch.h"
#include "nft/channel.h"
#include "nft/commit.h"
#include "nft/policy.h"
#include "nft/verify.h"

#define COMMIT_ATTEMPTS_MAX 16
#define RESTORE_ATTEMPTS_MAX 3 /* another process may change the table again meanwhile */
#define LOOPBACK_INDEX 1

const char *const firewall_event_names[] = {"intact", "restored", "lost"};
static_assert(ARRAY_LENGTH(firewall_event_names) == FIREWALL_EVENT_COUNT, "a name for every event");

/* The policy matches lo by its index, which is 1 in every namespace. Fails where it is not. */
static int check_loopback(struct failure *why)
{
    CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return failure_errno(why, errno, "open a socket to look at lo");
    struct ifreq request = {.ifr_ifindex = LOOPBACK_INDEX};
    if (ioctl(fd, SIOCGIFNAME, &request) < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
        return failure_errno(why, errno, "look at interface %d", LOOPBACK_INDEX);
    if ((request.ifr_flags & IFF_LOOPBACK) == 0)
        return failure_set(why, ENODEV, "interface %d is %.*s, not the loopback", LOOPBACK_INDEX,
                           IFNAMSIZ, request.ifr_name);
    return 0;
}

/* Checks that the kernel has nf_tables and permits its use, before anything is changed. */
static int check_kernel(struct firewall *firewall, struct failure *why)
{
    int result, attempts = 0;
    do
        result = verify_generation(firewall->owner, &firewall->sequence, &firewall->generation);
    while (commit_is_transient(result) && ++attempts < COMMIT_ATTEMPTS_MAX);
    if (result == -EPERM)
        return failure_set(why, EPERM, "CAP_NET_ADMIN is missing in this network namespace");
    if (result == -EINVAL || result == -EOPNOTSUPP)
        return failure_set(why, -result, "nf_tables is missing in this kernel (CONFIG_NF_TABLES)");
    return result < 0 ? failure_errno(why, -result, "ask for the rule set's generation") : 0;
}

/* True when the kernel refused an optional feature, which later batches then leave out. */
static bool give_up_feature(struct firewall *firewall, const struct batch *batch,
                            const struct commit_refusal *refusal)
{
    if (refusal->error != ENOENT && refusal->error != EOPNOTSUPP && refusal->error != EINVAL)
        return false;
    switch (batch->messages[refusal->index].feature) {
    case FEATURE_OWNER:
        firewall->has_owner = false;
        return true;
    case FEATURE_REJECT:
        firewall->has_reject = false;
        return true;
    case FEATURE_NONE:
    case FEATURE_COUNT:
        break;
    }
    return false;
}

static int put_in_force(struct firewall *firewall, struct batch *batch, struct failure *why)
{
    int result = 0;
    for (int attempt = 0; attempt < COMMIT_ATTEMPTS_MAX; attempt++) {
        struct commit_refusal refusal;
        result = policy_write(batch, firewall->sequence, firewall->has_owner, firewall->has_reject);
        if (result < 0)
            return failure_errno(why, -result, "build the firewall");
        firewall->sequence += batch->count;
        result = commit_batch(firewall->owner, batch, &refusal);
        if (result == 0)
            return 0;
        if (commit_is_transient(result) || give_up_feature(firewall, batch, &refusal))
            continue;
        return commit_explain(batch, &refusal, result, why);
    }
    return failure_errno(why, -result, "load the firewall, %d times", COMMIT_ATTEMPTS_MAX);
}

static int load(struct firewall *firewall, struct failure *why)
{
    struct batch batch;
    int result = check_loopback(why);
    if (result == 0)
        result = channel_open(&firewall->owner, 0, why);
    if (result == 0)
        result = check_kernel(firewall, why);
    if (result == 0)
        result = channel_open(&firewall->watch, NFNLGRP_NFTABLES, why);
    if (result == 0)
        result = put_in_force(firewall, &batch, why);
    if (result == 0)
        result =
            verify_state(firewall->owner, &firewall->sequence, &batch, &firewall->generation, why);
    return result;
}

int nft_firewall_load(struct firewall *firewall, struct failure *why)
{
    *firewall = (struct firewall){.has_owner = true, .has_reject = true, .sequence = 1};
    int result = load(firewall, why);
    if (result < 0)
        nft_firewall_close(firewall);
    return result;
}

int nft_firewall_watch_fd(const struct firewall *firewall)
{
    return mnl_socket_get_fd(firewall->watch);
}

static void drain_notifications(const struct firewall *firewall)
{
    _Alignas(4) char bytes[CHANNEL_BYTES_MAX];
    int length;
    do
        length = channel_receive(firewall->watch, bytes, sizeof(bytes));
    while (length > 0 || length == -ENOBUFS || length == -EMSGSIZE);
}

static int restore(struct firewall *firewall, struct batch *batch, struct failure *why)
{
    int result = -EBADMSG;
    for (int attempt = 0; attempt < RESTORE_ATTEMPTS_MAX && result == -EBADMSG; attempt++) {
        result = put_in_force(firewall, batch, why);
        if (result == 0)
            result = verify_state(firewall->owner, &firewall->sequence, batch,
                                  &firewall->generation, why);
    }
    return result;
}

int nft_firewall_check(struct firewall *firewall, enum firewall_event *event, struct failure *why)
{
    uint32_t generation;
    struct batch batch;
    drain_notifications(firewall);
    *event = FIREWALL_INTACT;
    int result = verify_generation(firewall->owner, &firewall->sequence, &generation);
    if (result == 0 && generation == firewall->generation)
        return 0;
    result = policy_write(&batch, firewall->sequence, firewall->has_owner, firewall->has_reject);
    if (result == 0)
        result =
            verify_state(firewall->owner, &firewall->sequence, &batch, &firewall->generation, why);
    if (result == 0)
        return 0;

    struct failure lost;
    *event = FIREWALL_RESTORED;
    result = restore(firewall, &batch, &lost);
    if (result < 0) {
        *event = FIREWALL_LOST;
        if (why)
            *why = lost;
    }
    return result;
}

void nft_firewall_close(struct firewall *firewall)
{
    if (firewall->owner)
        mnl_socket_close(firewall->owner);
    if (firewall->watch)
        mnl_socket_close(firewall->watch);
    firewall->owner = firewall->watch = NULL;
}
