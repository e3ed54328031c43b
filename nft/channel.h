/* A netlink socket to nfnetlink: requests whose answers are there when sending returns.
 *
 * The kernel handles a netlink request inside sendto(2) and queues its answers before that returns, a
 * dump's further parts inside recvmsg(2). So nothing here ever waits: no answer means a lost one.
 */
#ifndef NFT_CHANNEL_H
#define NFT_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include "common/os/failure.h"

#define CHANNEL_BYTES_MAX 16384 /* the kernel's parts of a dump are at most 8 KiB for us */

struct mnl_socket;
struct nlmsghdr;

/* A non-blocking socket; with `group` (NFNLGRP_...) it also receives that group's notifications. */
int channel_open(struct mnl_socket **out, int group, struct failure *why);

/* Sends one request or batch. 0 or a negative errno. */
int channel_send(const struct mnl_socket *channel, const void *bytes, size_t length);

/* Receives one datagram from the kernel: its length, 0 when none waits, or a negative errno: -ENOBUFS
 * when the kernel had to drop one, -EMSGSIZE when it is larger than `size`. */
int channel_receive(const struct mnl_socket *channel, void *out, size_t size);

/* Sends an nf_tables request with these flags and hands every message of the answer to `handle`, until
 * the answer ends. `table`, when not NULL, is put in as the first attribute (the table's name). 0, or
 * the first negative errno of the kernel or the handler; -EINTR when the dump was disturbed. */
int channel_request(const struct mnl_socket *channel, uint32_t sequence, uint16_t type,
                    uint16_t flags, const char *table,
                    int (*handle)(const struct nlmsghdr *message, void *context), void *context);

#endif
