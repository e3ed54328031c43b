/* Answers DNS questions as a resolver for which no name exists (RFC 1035).
 *
 * No name server can be reached from the sandbox, and programs linked with musl wait five seconds
 * after any answer but NXDOMAIN. So each question gets NXDOMAIN at once. A pure function, no I/O.
 */
#ifndef AGENT_DNS_H
#define AGENT_DNS_H

#include <stddef.h>
#include <stdint.h>

#define DNS_HEADER_LENGTH 12
#define DNS_NAME_MAX 255 /* RFC 1035 section 2.3.4, with the final 0 */
#define DNS_ANSWER_MAX (DNS_HEADER_LENGTH + DNS_NAME_MAX + 4) /* header and one question */

/* Writes the answer to a message of `length` bytes and returns the answer's length, at most
 * DNS_ANSWER_MAX. A query with one valid question gets NXDOMAIN with the question repeated. Other
 * queries get a header only: with NOTIMP for another opcode, with FORMERR for no, several or
 * invalid questions. Records after the question, such as EDNS, are ignored: an answer without OPT
 * says that EDNS is not supported (RFC 6891 section 7). Returns 0, which means no answer, for a
 * response, for less than a header, and when `size` is too small. */
size_t dns_answer(const uint8_t *query, size_t length, uint8_t *out, size_t size);

#endif
