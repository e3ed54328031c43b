/* The relay's end of TLS: the client's side, towards a broker over TCP, in fixed memory.
 *
 * Every connection that can carry requests owns a slot: BearSSL's client, and a buffer of one
 * record of full size in each direction, about 40 KiB. Smaller records would cost more system calls
 * and headers for the same bytes, and would save memory only in streams at full speed: the kernel
 * allocates the pages of a slot when they are first written, small records use one page of each
 * buffer, and all pages are returned at the end. An idle connection costs 12 KiB here (measured), a
 * connection at full speed both ways 48 KiB.
 *
 * A connection has `tls` set from the connect of its socket to the close. The pin is checked in the
 * handshake, before any byte of the client or of the preface is taken.
 */
#ifndef AGENT_TLS_H
#define AGENT_TLS_H

#include <stdbool.h>

#include "agent/connection.h"
#include "common/wire/relay_config.h"

/* Whether TLS is used with this address of a forward. */
bool tls_is_wanted(const struct relay_forward *forward, const struct endpoint *address);

/* Starts a handshake on the connection's target, for the pinned key of its forward. */
void tls_begin(struct connection *connection, const struct relay_forward *forward);

/* Wipes the slot and returns its memory; does nothing for a connection without TLS. */
void tls_finish(struct connection *connection);

#endif
