/* The answer of a resolver that knows no name (RFC 1035).
 *
 * Nothing in the sandbox reaches a name server, and programs linked with musl wait five seconds for
 * anything but an NXDOMAIN: so that is what every question gets, at once. A pure function, no I/O.
 */
#ifndef AGENT_DNS_H
#define AGENT_DNS_H

#include <stddef.h>
#include <stdint.h>

#define DNS_HEADER_LENGTH 12
#define DNS_NAME_MAX 255 /* RFC 1035 section 2.3.4, with its final 0 */
#define DNS_ANSWER_MAX (DNS_HEADER_LENGTH + DNS_NAME_MAX + 4) /* header and one question */

/* Writes the answer to a message of `length` bytes and returns the answer's length, at most
 * DNS_ANSWER_MAX. A question gets NXDOMAIN with the question repeated; anything else that asks
 * gets its header back: NOTIMP for another opcode, FORMERR where there is not exactly one
 * well-formed question (EDNS and other records behind it are not looked at: an answer without
 * OPT says that they are not understood, RFC 6891 section 7). 0, for no answer at all: a
 * response, less than a header, or `size` too small. */
size_t dns_answer(const uint8_t *query, size_t length, uint8_t *out, size_t size);

#endif
