/* The relay's end of TLS: the client's side, towards a broker over TCP, in fixed memory.
 *
 * Every connection that can carry requests owns a slot: BearSSL's client, and a buffer of one
 * record of full size in each direction, about 40 KiB. Smaller records would cost more system calls
 * and headers for the same bytes, and would save memory only in streams at full speed: the slots
 * are pages that the kernel gives once they are touched, small records touch one page of each
 * buffer, and all of them go back at the end. An idle connection costs 12 KiB here (measured), one
 * at full speed both ways 48 KiB.
 *
 * A connection has `tls` set from the moment that its socket is connected until the socket is
 * closed. The pin is checked within the handshake, before a byte of the client's or of the preface
 * is taken.
 */
#ifndef AGENT_TLS_H
#define AGENT_TLS_H

#include <stdbool.h>

#include "agent/connection.h"
#include "common/wire/relay_config.h"

/* Whether this address of a forward is spoken to by TLS. */
bool tls_is_wanted(const struct relay_forward *forward, const struct endpoint *address);

/* Starts a handshake on the connection's target, for the pinned key of its forward. */
void tls_begin(struct connection *connection, const struct relay_forward *forward);

/* Wipes and gives the slot's memory back; does nothing where there was no TLS. */
void tls_finish(struct connection *connection);

#endif
