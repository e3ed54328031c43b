/* One connection of the way in: see way_in.h for its states. */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_INTERNAL_H
#define QEMU_HARNESS_LAUNCHER_GUEST_WAY_IN_INTERNAL_H

#include "qemu-harness/launcher/guest/way_in.h"

/* Takes the accepted descriptor over, in WAITING and due at once. */
void way_in_connection_begin(struct way_in_connection *connection, int client, bool over_tcp,
                             int64_t now);

/* Closes both sides; the entry is free again. A client that does not have all reads a reset over
 * TCP. */
void way_in_connection_end(struct way_in_connection *connection);

/* One side has stopped sending or has closed. */
bool way_in_connection_half_open(const struct way_in_connection *connection);

/* Fills in up to two entries; `base` is the place of fds[0] in the whole array. */
unsigned way_in_connection_poll(struct way_in_connection *connection, struct pollfd *fds,
                                unsigned base);

/* When something is to be done without an event: ns, INT64_MAX for never. */
int64_t way_in_connection_due(const struct way_in_connection *connection);

/* `all` is the whole array. */
void way_in_connection_work(struct way_in_connection *connection, const struct guest_link *link,
                            const char *secret, const struct pollfd *all, int64_t now);

#endif
