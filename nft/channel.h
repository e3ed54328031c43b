/* A netlink socket to nfnetlink.
 *
 * The kernel handles a netlink request inside sendto(2) and queues the answers before that call
 * returns; it queues the further parts of a dump inside recvmsg(2). So no function here waits: when
 * no answer is queued, the answer was lost.
 */
#ifndef NFT_CHANNEL_H
#define NFT_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include "common/os/failure.h"

#define CHANNEL_BYTES_MAX 16384 /* the kernel sends a dump to us in parts of at most 8 KiB */

struct mnl_socket;
struct nlmsghdr;

/* Opens a non-blocking socket. With a `group` (NFNLGRP_...) other than 0, it also receives that
 * group's notifications. */
int channel_open(struct mnl_socket **out, int group, struct failure *why);

/* Sends one request or batch. 0 or a negative errno. */
int channel_send(const struct mnl_socket *channel, const void *bytes, size_t length);

/* Receives one datagram from the kernel. Returns its length, 0 when none is queued, or a negative
 * errno: -ENOBUFS when the kernel dropped one, -EMSGSIZE when it is larger than `size`. */
int channel_receive(const struct mnl_socket *channel, void *out, size_t size);

/* Sends an nf_tables request and calls `handle` for each message of the answer. `flags` are added
 * to NLM_F_REQUEST. `table`, if not NULL, is sent as the first attribute (the table's name).
 * Returns 0, or the first negative errno of the kernel or of `handle`; -EINTR when the rule set
 * changed during the dump. */
int channel_request(const struct mnl_socket *channel, uint32_t sequence, uint16_t type,
                    uint16_t flags, const char *table,
                    int (*handle)(const struct nlmsghdr *message, void *context), void *context);

#endif
